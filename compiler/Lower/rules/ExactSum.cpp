// Lowering of exact sums. All arithmetic is exact but the last rounding, so neither the order of a
// sum nor vectors nor f64 in place of f32 change a bit.
#include "dialects/Titan/ExactSum.h"
#include "compiler/Lower/Rules.h"

#include <cmath>

using namespace mlir;

namespace titan::lower {

namespace {

namespace exact = ir::exact;

constexpr double base = 0x1p32;
/// So many digits below 2^32 have a sum that f64 holds.
constexpr int64_t longestRun = int64_t(1) << (53 - exact::digitBits);

/// The words of `count` elements from number `first` on.
Value sumRun(LoweringBuilder& l, Value operand, Value scales, int64_t first, int64_t count) {
  auto type = RankedTensorType::get(exact::words, l.builder.getI64Type());
  LoweringBuilder::Read reads[] = {{operand, l.map(2, {l.dim(1) + first})},
                                   {scales, l.project(2, {0})}};
  return l.fused(
      {exact::words, count}, reads, LoweringBuilder::Write{type, l.project(2, {0})},
      [&](Body& b, ValueRange v) {
        Type f64 = b.builder.getF64Type(), i64 = b.builder.getI64Type();
        Value x = b.narrow(v[0], f64), scale = v[1], zero = b.constant(f64, 0);
        Value isFinite = b.compare(arith::CmpFPredicate::OLT, b.abs(x),
                                   b.constant(f64, std::ldexp(1.0, exact::limit)));
        Value finite = b.select(isFinite, x, zero);
        // The element in units of this digit, less what the digits above have.
        Value units = b.create<math::TruncOp>(b.mul(finite, scale));
        Value above =
            b.create<math::TruncOp>(b.mul(finite, b.mul(scale, b.constant(f64, 1 / base))));
        Value digit = b.sub(units, b.mul(above, b.constant(f64, base)));
        Value word = b.create<arith::IndexCastOp>(i64, b.index(0));
        Value counts = b.compare(arith::CmpIPredicate::eq, word, b.integer(i64, exact::digits));
        Value term = b.select(counts, b.select(isFinite, zero, b.constant(f64, 1)), digit);
        Value sum = b.reduce(kernel::ReduceKind::Add, term, {1});
        return SmallVector<Value>{b.create<arith::FPToSIOp>(i64, sum)};
      })[0];
}

/// What an element is multiplied with to count the units of each digit.
Value digitScales(LoweringBuilder& l) {
  SmallVector<double> scales(exact::words, 0);
  for (int digit = 0; digit < exact::digits; ++digit)
    scales[digit] = std::ldexp(1.0, -(digit * static_cast<int>(exact::digitBits) + exact::unit));
  auto type = RankedTensorType::get(exact::words, l.builder.getF64Type());
  return kernel::ConstantOp::create(l.builder, l.loc, type,
                                    DenseElementsAttr::get(type, ArrayRef(scales)), IntegerAttr());
}

/// Scalar arithmetic on the words of a sum.
class WordReader {
public:
  explicit WordReader(Body& body) : b(body), i64(b.builder.getI64Type()) {}

  /// Each word of the row `row` as a scalar.
  SmallVector<Value> split(Value row) {
    Value place = b.create<arith::IndexCastOp>(i64, b.index(0));
    SmallVector<Value> words;
    for (int64_t word = 0; word < exact::words; ++word) {
      Value isHere = b.compare(arith::CmpIPredicate::eq, place, number(word));
      words.push_back(b.reduce(kernel::ReduceKind::Add, b.select(isHere, row, number(0)), {0}));
    }
    return words;
  }

  /// The number that `digits` (words without the count) stand for, in f64. What f64 has no place
  /// for makes its last bit odd, so that rounding it once more is rounding once.
  Value valueOf(SmallVector<Value> digits) {
    Value isNegative = b.compare(arith::CmpIPredicate::slt, carry(digits).back(), number(0));
    for (Value& digit : digits)
      digit = b.select(isNegative, sub(number(0), digit), digit);
    Value magnitude = magnitudeOf(carry(digits));
    return b.select(isNegative, b.neg(magnitude), magnitude);
  }

private:
  Body& b;
  Type i64;

  Value number(int64_t value) { return b.integer(i64, value); }
  Value real(double value) { return b.constant(b.builder.getF64Type(), value); }
  Value sub(Value a, Value c) { return b.create<arith::SubIOp>(a, c); }
  Value both(Value a, Value c) { return b.create<arith::OrIOp>(a, c); }
  Value up(Value a, int64_t bits) { return b.create<arith::ShLIOp>(a, number(bits)); }
  Value down(Value a, int64_t bits) { return b.create<arith::ShRSIOp>(a, number(bits)); }
  Value lowest(Value a, int64_t bits) {
    return b.create<arith::AndIOp>(a, number((int64_t(1) << bits) - 1));
  }
  Value isNot0(Value a) { return b.compare(arith::CmpIPredicate::ne, a, number(0)); }

  /// Digits within [0, 2^32), and what is carried out of the last: negative if the number is.
  SmallVector<Value> carry(ArrayRef<Value> words) {
    SmallVector<Value> digits;
    Value carried = number(0);
    for (Value word : words) {
      Value sum = b.create<arith::AddIOp>(word, carried);
      digits.push_back(lowest(sum, exact::digitBits));
      carried = down(sum, exact::digitBits);
    }
    digits.push_back(carried);
    return digits;
  }

  /// The highest digit that is not 0, the next two, whether there is anything below, and the unit
  /// of the highest.
  struct Leading {
    Value first, second, third, rest, unit;
  };
  Leading findLeading(ArrayRef<Value> digits) {
    Value zero = number(0), below = zero;
    Leading found = {zero, zero, zero, zero, real(0)};
    for (auto [i, digit] : llvm::enumerate(digits)) {
      if (i > 2)
        below = both(below, digits[i - 3]);
      const Leading here = {
          digit, i > 0 ? digits[i - 1] : zero, i > 1 ? digits[i - 2] : zero, below,
          real(std::ldexp(1.0, static_cast<int>(i * exact::digitBits) + exact::unit))};
      Value isHigher = isNot0(digit);
      for (Value Leading::* part :
           {&Leading::first, &Leading::second, &Leading::third, &Leading::rest, &Leading::unit})
        found.*part = b.select(isHigher, here.*part, found.*part);
    }
    return found;
  }

  Value magnitudeOf(ArrayRef<Value> digits) {
    const Leading leading = findLeading(digits);
    Value result = withFraction(leading, 42);
    for (auto [bits, fraction] : {std::pair(10, 32), std::pair(20, 20)}) {
      Value isLonger =
          b.compare(arith::CmpIPredicate::sge, leading.first, number(int64_t(1) << bits));
      result = b.select(isLonger, withFraction(leading, fraction), result);
    }
    return result;
  }

  /// The leading digits with `fraction` bits behind the first, and one more for the rest: exact in
  /// f64 while the first has at most 52 - `fraction` bits.
  Value withFraction(const Leading& leading, int64_t fraction) {
    constexpr int64_t bits = exact::digitBits;
    const int64_t ofSecond = std::min(fraction, bits), ofThird = fraction - ofSecond;
    Value head =
        both(up(leading.first, fraction), up(down(leading.second, bits - ofSecond), ofThird));
    head = both(head, down(leading.third, bits - ofThird));
    Value rest =
        both(both(lowest(leading.second, bits - ofSecond), lowest(leading.third, bits - ofThird)),
             leading.rest);
    Value sticky = b.create<arith::ExtUIOp>(i64, isNot0(rest));
    Value whole = b.create<arith::SIToFPOp>(b.builder.getF64Type(), both(up(head, 1), sticky));
    return b.mul(whole,
                 b.mul(leading.unit, real(std::ldexp(1.0, -static_cast<int>(fraction) - 1))));
  }
};

struct Rules {
  static LogicalResult lower(ir::ExactSumOp op, LoweringBuilder& l) {
    const int64_t elements = tensorType(op.getOperand()).getNumElements();
    Value operand = l.castShape(op.getOperand(), elements), scales = digitScales(l), words;
    for (int64_t first = 0; first < elements; first += longestRun) {
      Value run = sumRun(l, operand, scales, first, std::min(longestRun, elements - first));
      words = words ? l.elementwise(
                          tensorType(run), {words, run},
                          [](Body& b, ValueRange v) { return b.create<arith::AddIOp>(v[0], v[1]); })
                    : run;
    }
    l.replace(words);
    return success();
  }

  static LogicalResult lower(ir::ExactValueOp op, LoweringBuilder& l) {
    LoweringBuilder::Read read = {op.getWords(), l.identity(1)};
    LoweringBuilder::Write write = {tensorType(op.getResult()), l.project(1, {})};
    l.replace(l.fused(exact::words, read, write, [&](Body& b, ValueRange v) {
      WordReader reader(b);
      SmallVector<Value> words = reader.split(v[0]);
      Value count = words.pop_back_val();
      Value isFinite = b.compare(arith::CmpIPredicate::eq, count, b.integer(count.getType(), 0));
      Value value = reader.valueOf(words);
      return SmallVector<Value>{b.select(isFinite, value, b.constantLike(value, NAN))};
    }));
    return success();
  }
};

} // namespace

void attachExactSumRules(MLIRContext* context) {
  attachRules<Rules, ir::ExactSumOp, ir::ExactValueOp>(context);
}

} // namespace titan::lower
