#include "compiler/Codegen/kernel/ApplyPatterns.h"
#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace titan::codegen {

#define GEN_PASS_DEF_EXPANDMATH
#include "compiler/Codegen/kernel/Passes.h.inc"

namespace {

using arith::CmpFPredicate;

/// Writes arithmetic on f32: a scalar, or each lane of a vector.
class Arithmetic {
public:
  Arithmetic(PatternRewriter& rewriter, Operation* op)
      : rewriter(rewriter), loc(op->getLoc()), type(op->getResult(0).getType()) {}

  Value constant(double value) {
    return constant(rewriter.getF32FloatAttr(static_cast<float>(value)), type);
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(rewriter, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(rewriter, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(rewriter, loc, a, b); }
  Value neg(Value a) { return arith::NegFOp::create(rewriter, loc, a); }
  Value abs(Value a) { return math::AbsFOp::create(rewriter, loc, a); }
  Value copySign(Value a, Value sign) { return math::CopySignOp::create(rewriter, loc, a, sign); }
  Value fma(Value a, Value b, Value c) { return math::FmaOp::create(rewriter, loc, a, b, c); }
  Value round(Value a) { return math::RoundEvenOp::create(rewriter, loc, a); }
  /// What remains of whole numbers by `divisor`, a power of two: at least 0, and exact.
  Value remainder(Value a, double divisor) {
    Value quotient = math::FloorOp::create(rewriter, loc, mul(a, constant(1 / divisor)));
    return fma(quotient, constant(-divisor), a);
  }

  /// Where `test` is above (OGT) or below (OLT) `limit`, `instead`. A comparison with a NaN fails,
  /// so that it stays.
  Value replaceBeyond(CmpFPredicate predicate, Value test, double limit, double instead,
                      Value value) {
    Value isBeyond = arith::CmpFOp::create(rewriter, loc, predicate, test, constant(limit));
    return arith::SelectOp::create(rewriter, loc, isBeyond, constant(instead), value);
  }
  /// `then` where `test` is above `limit`, `otherwise` elsewhere and where it is a NaN.
  Value whereAbove(Value test, double limit, Value then, Value otherwise) {
    Value isAbove = arith::CmpFOp::create(rewriter, loc, CmpFPredicate::OGT, test, constant(limit));
    return arith::SelectOp::create(rewriter, loc, isAbove, then, otherwise);
  }
  Value atLeast(Value value, double limit) {
    return replaceBeyond(CmpFPredicate::OLT, value, limit, limit, value);
  }
  Value atMost(Value value, double limit) {
    return replaceBeyond(CmpFPredicate::OGT, value, limit, limit, value);
  }

  /// Horner's scheme.
  Value polynomial(Value z, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, z, constant(coefficient));
    return sum;
  }

  /// The f32 whose bits are the lowest ones of `value` moved up by `places`.
  Value shiftBits(Value value, int64_t places) {
    Value moved = arith::ShLIOp::create(rewriter, loc, bitsOf(value), integer(places));
    return arith::BitcastOp::create(rewriter, loc, type, moved);
  }

  /// a / b within 2 ulp, for b in 2^-100 .. 2^100. A division that rounds rightly is a dozen
  /// instructions and a branch on a card, and slow on a CPU.
  ///
  /// The difference of `reciprocalSeed` and the bits of b are those of 1 / b within 5.1 %, since
  /// the bits of a positive number are nearly its logarithm. Of the error e that is left,
  /// 1 + e + e^2 leaves e^3, and Newton's step on the quotient the square of that: 2^-25.
  Value quotient(Value a, Value b) {
    constexpr int64_t reciprocalSeed = 0x7ef311c3;
    Value one = constant(1), minusB = neg(b);
    Value bits = arith::SubIOp::create(rewriter, loc, integer(reciprocalSeed), bitsOf(b));
    Value reciprocal = arith::BitcastOp::create(rewriter, loc, type, bits);
    Value error = fma(minusB, reciprocal, one);
    reciprocal = fma(reciprocal, fma(error, error, error), reciprocal);
    Value quotient = mul(a, reciprocal);
    return fma(quotient, fma(minusB, reciprocal, one), quotient);
  }

private:
  Value constant(TypedAttr scalar, Type type) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return arith::ConstantOp::create(rewriter, loc, DenseElementsAttr::get(shaped, scalar));
    return arith::ConstantOp::create(rewriter, loc, scalar);
  }
  Type bitsType() {
    Type i32 = rewriter.getI32Type();
    auto vector = dyn_cast<VectorType>(type);
    return vector ? vector.clone(i32) : i32;
  }
  Value integer(int64_t value) { return constant(rewriter.getI32IntegerAttr(value), bitsType()); }
  Value bitsOf(Value value) { return arith::BitcastOp::create(rewriter, loc, bitsType(), value); }

  PatternRewriter& rewriter;
  Location loc;
  Type type;
};

/// Replaces an op on f32 by what `expand` writes, before upstream's pattern.
template <typename Op, Value expand(Arithmetic&, Op)> struct Expand : OpRewritePattern<Op> {
  explicit Expand(MLIRContext* context) : OpRewritePattern<Op>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Arithmetic a(rewriter, op);
    rewriter.replaceOp(op, expand(a, op));
    return success();
  }
};

/// e^x = 2^n e^r, n the integer next to x / ln 2: 0.9 ulp for normal results up to 2^127.5, from
/// there to the largest f32 105 ulp. 0 below 2^-126.5.
///
/// n is found by a sum with 1.5 * 2^23 + 127, whose last bit is a one: the lowest bits of that sum
/// are n + 127, the exponent of 2^n. So nothing is rounded to an integer and converted, which takes
/// a card eight times as long as a sum. ln 2 is split as Cephes splits it: n times its first part
/// is exact. e^r is 1 + r + r^2 q(r), q a minimax fit (3.1e-9) on |r| <= ln 2 / 2.
Value expandExp(Arithmetic& a, math::ExpOp op) {
  constexpr double bias = 12582912 + 127, largest = 127;
  constexpr double log2E = 1.4426950408889634, highLn2 = 0.693359375,
                   lowLn2 = -2.1219444005469058e-4;
  constexpr double coefficients[] = {1,
                                     1,
                                     0.49999993432110607,
                                     0.16666520398962353,
                                     0.041668390787371626,
                                     0.00836874511635892,
                                     0.0013814539988580964};
  // -88 is the lowest one of which n + 127 is 0, and so is 2^n.
  Value x = a.atLeast(op.getOperand(), -88);
  Value biased = a.fma(x, a.constant(log2E), a.constant(bias));
  if (!op->hasAttr(nonPositiveAttr))
    biased = a.atMost(biased, bias + largest);
  Value n = a.sub(biased, a.constant(bias));
  Value r = a.fma(n, a.constant(-highLn2), x);
  r = a.fma(n, a.constant(-lowLn2), r);
  return a.mul(a.polynomial(r, coefficients), a.shiftBits(biased, 23));
}

/// tanh(x) = x P(x^2) / Q(x^2) on |x| <= tanhLimit, where it is 1 in f32 and stays it: a rational
/// fit in relative error (2.1e-8), its coefficients then moved among neighbouring f32 for the
/// smallest error with rounding, 5.6 ulp, and no value above 1.
Value expandTanh(Arithmetic& a, math::TanhOp op) {
  constexpr double tanhLimit = 8.17789936;
  constexpr double numerator[] = {1, 0.133810088, 0.00349556841, 2.06087589e-05, 1.33542484e-08};
  constexpr double denominator[] = {1, 0.467143208, 0.0258769076, 0.000328560272, 7.7763741e-07};
  Value x = a.atLeast(a.atMost(op.getOperand(), tanhLimit), -tanhLimit);
  Value z = a.mul(x, x);
  return a.quotient(a.mul(x, a.polynomial(z, numerator)), a.polynomial(z, denominator));
}

/// erf(x) = x P(x^2) / Q(x^2) on |x| <= erfLimit, beyond which the nearest f32 is 1: a rational fit
/// in relative error (1.9e-8), its coefficients then moved among neighbouring f32 for the smallest
/// error with rounding: 5.9 ulp. Upstream's polynomials by intervals are as accurate, with twice
/// the instructions.
Value expandErf(Arithmetic& a, math::ErfOp op) {
  constexpr double erfLimit = 3.9192059;
  constexpr double numerator[] = {1.1283791065216064,    0.19037280976772308,
                                  0.052744943648576736,  0.0037643478717654943,
                                  0.0002848850272130221, 2.050760258498485e-06};
  constexpr double denominator[] = {1.0,
                                    0.5020462870597839,
                                    0.1140957921743393,
                                    0.014966662973165512,
                                    0.0011622844031080604,
                                    3.809878398897126e-05};
  auto saturate = [&](Value value, Value test, double limit) {
    value = a.replaceBeyond(CmpFPredicate::OGT, test, limit, 1, value);
    return a.replaceBeyond(CmpFPredicate::OLT, test, -limit, -1, value);
  };
  Value x = op.getOperand(), z = a.mul(x, x);
  Value result = a.quotient(a.mul(x, a.polynomial(z, numerator)), a.polynomial(z, denominator));
  return saturate(saturate(result, result, 1), x, erfLimit);
}

/// atan(x) = x P(x^2) on |x| <= 1, a minimax fit in relative error (1.5e-8), and beyond it
/// pi/2 - atan(1/|x|) with the sign of x: 3 ulp. Upstream's polynomial is off by 40.
Value expandAtan(Arithmetic& a, math::AtanOp op) {
  constexpr double largest = 0x1p100; // whose reciprocal is nothing beside pi/2
  constexpr double halfPi = 1.5707963705062866, rest = -4.371139000186241e-08;
  constexpr double coefficients[] = {1,
                                     -0.3333307206630707,
                                     0.1999261975288391,
                                     -0.14203643798828125,
                                     0.10640930384397507,
                                     -0.07504286617040634,
                                     0.0426914319396019,
                                     -0.016068575903773308,
                                     0.002849876182153821};
  Value x = op.getOperand(), distance = a.atMost(a.abs(x), largest);
  Value inverse = a.quotient(a.constant(1), a.atLeast(distance, 1));
  Value t = a.whereAbove(distance, 1, inverse, distance);
  Value angle = a.mul(t, a.polynomial(a.mul(t, t), coefficients));
  Value steep = a.add(a.sub(a.constant(halfPi), angle), a.constant(rest));
  return a.copySign(a.whereAbove(distance, 1, steep, angle), x);
}

/// sin(x) where `shift` is 0, cos(x) where it is 1: 2 ulp up to |x| = 2^17, 10^-5 up to 2^31.
///
/// Of x the quarters of a turn are taken off, with pi/2 in three parts: a whole number times the
/// first is exact in fma, and so is the difference. Upstream's pattern has the first alone, which
/// is off by 10^-4 at 2,000. The quotient of a large x is off by some quarters: the second round
/// takes those off. Polynomials of Cephes on |r| <= pi/4.
Value expandSine(Arithmetic& a, Value x, double shift) {
  constexpr double halfPi[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};
  constexpr double sinCoefficients[] = {1, -1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
  constexpr double cosCoefficients[] = {1, -0.5, 4.166664568298827e-2, -1.388731625493765e-3,
                                        2.443315711809948e-5};
  Value rest = x, quarters = a.constant(shift);
  for (int round = 0; round < 2; ++round) {
    Value quotient = a.round(a.mul(rest, a.constant(0x1.45f306p-1)));
    quarters = a.add(quarters, a.remainder(quotient, 4));
    for (double part : halfPi)
      rest = a.fma(a.neg(quotient), a.constant(part), rest);
  }
  rest = a.atLeast(a.atMost(rest, 1), -1); // an angle without a digit behind the point
  Value z = a.mul(rest, rest);
  Value sine = a.mul(rest, a.polynomial(z, sinCoefficients));
  Value cosine = a.polynomial(z, cosCoefficients);
  Value value = a.whereAbove(a.remainder(quarters, 2), 0, cosine, sine);
  return a.whereAbove(a.remainder(quarters, 4), 1, a.neg(value), value);
}
Value expandSin(Arithmetic& a, math::SinOp op) { return expandSine(a, op.getOperand(), 0); }
Value expandCos(Arithmetic& a, math::CosOp op) { return expandSine(a, op.getOperand(), 1); }

/// expm1 of f64 by exp and log, as Kahan has it: what e^x loses by rounding to u, u - 1 and log u
/// lose alike, so that their quotient is right where the difference e^x - 1, which conversion to
/// LLVM would make of it, has no digits left. For f32 upstream's pattern does the same.
struct ExpandWideExpm1 : OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op, PatternRewriter& rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF64())
      return rewriter.notifyMatchFailure(op, "not f64");
    Location loc = op.getLoc();
    Value x = op.getOperand();
    auto constant = [&](double value) -> Value {
      TypedAttr number = rewriter.getF64FloatAttr(value);
      if (auto vector = dyn_cast<VectorType>(op.getType()))
        number = DenseElementsAttr::get(vector, number);
      return arith::ConstantOp::create(rewriter, loc, number);
    };
    auto where = [&](Value a, double b, Value then, Value otherwise) {
      Value equal = arith::CmpFOp::create(rewriter, loc, CmpFPredicate::OEQ, a, constant(b));
      return arith::SelectOp::create(rewriter, loc, equal, then, otherwise).getResult();
    };
    Value u = math::ExpOp::create(rewriter, loc, x);
    Value difference = arith::SubFOp::create(rewriter, loc, u, constant(1));
    Value ratio = arith::DivFOp::create(rewriter, loc, x, math::LogOp::create(rewriter, loc, u));
    Value result = arith::MulFOp::create(rewriter, loc, difference, ratio);
    result = where(u, 1, x, result);                    // 0 / 0
    result = where(difference, -1, difference, result); // -x / inf
    rewriter.replaceOp(op, where(u, std::numeric_limits<double>::infinity(), u, result));
    return success();
  }
};

/// The remainder of f32 in f64, where every quotient is below 2^28; elsewhere, and where there is
/// no number or an infinity, all lanes are left to libm. A quotient that is not whole is more than
/// 2^-25 below the next whole number, and f64 loses less of it. The whole quotient has 28 bits and
/// the divisor 24, so that their product fits, and what remains is an f32.
void expandRemainder(arith::RemFOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type wide = b.getF64Type();
  if (auto vector = dyn_cast<VectorType>(op.getType()))
    wide = vector.clone(wide);
  auto constant = [&](double value) -> Value {
    TypedAttr number = b.getF64FloatAttr(value);
    if (auto vector = dyn_cast<VectorType>(wide))
      number = DenseElementsAttr::get(vector, number);
    return arith::ConstantOp::create(b, number);
  };
  auto isBelow = [&](Value x, double limit) -> Value {
    return arith::CmpFOp::create(b, CmpFPredicate::OLT, math::AbsFOp::create(b, x),
                                 constant(limit));
  };
  Value x = arith::ExtFOp::create(b, wide, op.getLhs());
  Value y = arith::ExtFOp::create(b, wide, op.getRhs());
  Value quotient = math::TruncOp::create(b, arith::DivFOp::create(b, x, y));
  Value isExact = arith::AndIOp::create(b, isBelow(quotient, 0x1p28),
                                        isBelow(y, std::numeric_limits<double>::infinity()));
  if (isa<VectorType>(op.getType()))
    isExact = vector::ReductionOp::create(b, vector::CombiningKind::AND, isExact);
  auto branch = scf::IfOp::create(b, op.getType(), isExact, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  Value rest = math::FmaOp::create(b, arith::NegFOp::create(b, quotient), y, x);
  rest = math::CopySignOp::create(b, rest, x); // of zeros
  scf::YieldOp::create(b, arith::TruncFOp::create(b, op.getType(), rest).getResult());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, b.clone(*op)->getResults());
  op.replaceAllUsesWith(branch.getResult(0));
  op.erase();
}

struct ExpandMath : impl::ExpandMathBase<ExpandMath> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<Expand<math::ExpOp, expandExp>, Expand<math::TanhOp, expandTanh>,
            Expand<math::ErfOp, expandErf>, Expand<math::AtanOp, expandAtan>,
            Expand<math::SinOp, expandSin>, Expand<math::CosOp, expandCos>, ExpandWideExpm1>(
        context);
    // The hyperbolic functions but tanh are written with exp, which is expanded next.
    math::populateExpansionPatterns(set, {"sinh", "cosh", "asinh", "acosh", "atanh", "exp2f"});
    populateMathPolynomialApproximationPatterns(set, [](StringRef name) {
      return llvm::is_contained(
          {math::ExpM1Op::getOperationName(), math::LogOp::getOperationName(),
           math::Log2Op::getOperationName(), math::Log1pOp::getOperationName(),
           math::ErfcOp::getOperationName(), math::Atan2Op::getOperationName()},
          name);
    });
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    // No pattern: each leaves a remainder for libm.
    SmallVector<arith::RemFOp> remainders;
    getOperation()->walk([&](arith::RemFOp op) {
      if (getElementTypeOrSelf(op.getType()).isF32())
        remainders.push_back(op);
    });
    llvm::for_each(remainders, expandRemainder);
    if (failed(applyPatterns(getOperation(), patterns)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
