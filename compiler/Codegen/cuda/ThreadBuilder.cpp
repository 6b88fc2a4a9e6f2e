#include "compiler/Codegen/cuda/ThreadBuilder.h"

#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen::cuda {

Value ThreadBuilder::number(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute;
  if (element.isF32())
    attribute = builder.getF32FloatAttr(static_cast<float>(value));
  else
    attribute = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  if (auto shaped = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(shaped, attribute);
  return create<arith::ConstantOp>(attribute);
}

Value ThreadBuilder::fma(Value x, Value y, Value sum) { return create<math::FmaOp>(x, y, sum); }

Value ThreadBuilder::lane(Value vector, int64_t number) {
  return create<vector::ExtractOp>(vector, ArrayRef<int64_t>{number});
}

Value ThreadBuilder::splat(Value scalar, int64_t lanes) {
  return create<vector::BroadcastOp>(VectorType::get({lanes}, scalar.getType()), scalar);
}

Value ThreadBuilder::join(ArrayRef<Value> lanes) {
  auto type = VectorType::get({static_cast<int64_t>(lanes.size())}, lanes.front().getType());
  return create<vector::FromElementsOp>(type, lanes);
}

Value ThreadBuilder::widen(Value value) {
  if (getElementTypeOrSelf(value).isF32())
    return value;
  Type type = builder.getF32Type();
  if (auto shaped = dyn_cast<VectorType>(value.getType()))
    type = shaped.clone(type);
  return create<arith::ExtFOp>(type, value);
}

Value ThreadBuilder::narrow(Value value, Type element) {
  if (element.isF32())
    return value;
  Type type = element;
  if (auto shaped = dyn_cast<VectorType>(value.getType()))
    type = shaped.clone(element);
  return create<arith::TruncFOp>(type, value);
}

void ThreadBuilder::when(Value condition, llvm::function_ref<void()> then) {
  emitIf(builder, loc, condition, {}, [&] {
    then();
    return SmallVector<Value>();
  });
}

Value ThreadBuilder::address(Value pointer, Type element, Value at) {
  if (at.getType().isIndex())
    at = create<arith::IndexCastOp>(builder.getI64Type(), at);
  return create<LLVM::GEPOp>(pointer.getType(), element, pointer, LLVM::GEPArg(at));
}

Value ThreadBuilder::address(Value pointer, Type element, int64_t at) {
  return at == 0 ? pointer : address(pointer, element, index(at));
}

Value ThreadBuilder::load(Type type, Value address, int64_t alignment) {
  return create<LLVM::LoadOp>(type, address, static_cast<unsigned>(alignment));
}

Value ThreadBuilder::loadIf(Value condition, Type type, Value address, int64_t alignment) {
  if (alignment == 0)
    alignment = type.getIntOrFloatBitWidth() / 8;
  if (!condition)
    return load(type, address, alignment);
  Value zero = create<arith::ConstantOp>(builder.getZeroAttr(type));
  return emitIf(builder, loc, condition, zero,
                [&] { return SmallVector<Value>{load(type, address, alignment)}; })[0];
}

void ThreadBuilder::store(Value value, Value address, int64_t alignment) {
  LLVM::StoreOp::create(builder, loc, value, address, static_cast<unsigned>(alignment));
}

} // namespace titan::codegen::cuda
