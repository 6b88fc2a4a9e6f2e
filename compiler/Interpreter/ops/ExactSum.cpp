// Meaning of exact sums: the integers that they are.
#include "dialects/Titan/ExactSum.h"
#include "compiler/Interpreter/Models.h"

#include <cmath>

using namespace mlir;
using namespace titan::ir;

namespace titan::interpreter {

namespace {

constexpr int mantissaBits = 53;
constexpr uint64_t digitMask = (uint64_t(1) << exact::digitBits) - 1;

/// Adds sign * bits * 2^position, of at most 32 bits, to the digits.
void addBits(MutableArrayRef<int64_t> words, int64_t sign, uint64_t bits, int64_t position) {
  bits <<= position % exact::digitBits;
  for (int64_t word = position / exact::digitBits; bits != 0; ++word, bits >>= exact::digitBits)
    words[word] += sign * static_cast<int64_t>(bits & digitMask);
}

void addElement(MutableArrayRef<int64_t> words, double x) {
  if (!(std::abs(x) < std::ldexp(1.0, exact::limit))) {
    ++words[exact::digits];
    return;
  }
  int exponent;
  auto mantissa =
      static_cast<uint64_t>(std::ldexp(std::frexp(std::abs(x), &exponent), mantissaBits));
  int position = exponent - mantissaBits - exact::unit;
  if (position < 0) { // only an f64 has digits below the unit
    mantissa = -position < mantissaBits ? mantissa >> -position : 0;
    position = 0;
  }
  const int64_t sign = x < 0 ? -1 : 1;
  addBits(words, sign, mantissa & digitMask, position);
  addBits(words, sign, mantissa >> exact::digitBits, position + exact::digitBits);
}

LogicalResult exactSum(ExactSumOp op, Frame& frame) {
  Tensor result(cast<ShapedType>(op.getType()));
  for (double x : frame.get(op.getOperand()).floats())
    addElement(result.mutableIntegers(), x);
  frame.setExact(op, std::move(result));
  return success();
}

/// `magnitude` * 2^unit, rounded to `precision` bits, to even where two are equally near.
double roundMagnitude(const APInt& magnitude, unsigned precision) {
  const unsigned active = magnitude.getActiveBits(), shift = active - std::min(active, precision);
  APInt kept = magnitude.lshr(shift);
  const APInt rest = magnitude - kept.shl(shift);
  const APInt half = APInt::getOneBitSet(magnitude.getBitWidth(), shift).lshr(1);
  if (shift > 0 && (rest.ugt(half) || (rest == half && kept[0])))
    ++kept;
  return std::ldexp(static_cast<double>(kept.getZExtValue()),
                    static_cast<int>(shift) + exact::unit);
}

LogicalResult exactValue(ExactValueOp op, Frame& frame) {
  ArrayRef<int64_t> words = frame.get(op.getWords()).integers();
  constexpr unsigned width = exact::digits * exact::digitBits + 64;
  APInt sum(width, 0);
  for (auto [i, word] : llvm::enumerate(words.take_front(exact::digits)))
    sum += APInt(width, static_cast<uint64_t>(word), /*isSigned=*/true)
               .shl(static_cast<unsigned>(i * exact::digitBits));
  const double magnitude =
      roundMagnitude(sum.abs(), frame.engine() == Engine::F64 ? mantissaBits : 24);
  const double value = sum.isNegative() ? -magnitude : magnitude;
  const bool isFinite = words[exact::digits] == 0;
  frame.set(op, Tensor::scalar(getElementTypeOrSelf(op.getType()), isFinite ? value : NAN));
  return success();
}

} // namespace

void attachExactSum(MLIRContext* context) {
  attach<ExactSumOp, exactSum>(context);
  attach<ExactValueOp, exactValue>(context);
}

} // namespace titan::interpreter
