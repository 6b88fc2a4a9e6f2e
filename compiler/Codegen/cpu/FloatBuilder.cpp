#include "compiler/Codegen/cpu/FloatBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {

FloatBuilder::FloatBuilder(OpBuilder& builder, Location loc, FloatType scalar, int64_t width)
    : KernelBuilder(builder, loc, width), scalar(scalar), vector(vectorOf(scalar)) {}

Value FloatBuilder::number(double value) {
  return create<arith::ConstantOp>(builder.getFloatAttr(scalar, value));
}
Value FloatBuilder::numbers(double value) {
  return create<arith::ConstantOp>(
      DenseElementsAttr::get(vector, builder.getFloatAttr(scalar, value)));
}
Value FloatBuilder::fma(Value a, Value b, Value c) { return create<math::FmaOp>(a, b, c); }

Value FloatBuilder::maximum(Value a, Value b) {
  return select(create<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, b), a, b);
}

Value FloatBuilder::sumLanes(Value value) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), half);
    Value a = create<vector::ShuffleOp>(value, value, low);
    Value b = create<vector::ShuffleOp>(value, value, high);
    value = create<arith::AddFOp>(a, b);
  }
  return create<vector::ExtractOp>(value, ArrayRef<int64_t>{0});
}

// A bf16 is the upper half of an f32.
Value FloatBuilder::widen(Value value) {
  Type element = getElementTypeOrSelf(value);
  if (element == scalar)
    return value;
  auto type = cast<VectorType>(value.getType());
  if (!element.isInteger(16))
    return create<arith::ExtFOp>(type.clone(scalar), value);
  VectorType bits = type.clone(builder.getI32Type());
  Value upper = create<arith::ShLIOp>(create<arith::ExtUIOp>(bits, value), splat(bits, 16));
  return create<arith::BitcastOp>(type.clone(scalar), upper);
}

Value FloatBuilder::narrow(Value value, Type element) {
  if (element == scalar)
    return value;
  auto type = cast<VectorType>(value.getType());
  if (!element.isInteger(16))
    return create<arith::TruncFOp>(type.clone(element), value);
  // To nearest, ties to even. A NaN could overflow to another number.
  constexpr int64_t halfMinusOne = 0x7fff, quietNan = 0x7fc0;
  VectorType bits = type.clone(builder.getI32Type());
  Value whole = create<arith::BitcastOp>(bits, value);
  Value upper = create<arith::ShRUIOp>(whole, splat(bits, 16));
  Value odd = create<arith::AndIOp>(upper, splat(bits, 1));
  Value rounding = create<arith::AddIOp>(odd, splat(bits, halfMinusOne));
  Value rounded = create<arith::ShRUIOp>(create<arith::AddIOp>(whole, rounding), splat(bits, 16));
  Value isNan = create<arith::CmpFOp>(arith::CmpFPredicate::UNO, value, value);
  rounded = select(isNan, splat(bits, quietNan), rounded);
  return create<arith::TruncIOp>(type.clone(element), rounded);
}

} // namespace titan::codegen
