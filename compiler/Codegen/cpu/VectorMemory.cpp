#include "compiler/Codegen/cpu/VectorMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

unsigned byteWidth(const ElementRun& run) { return run.stored.getIntOrFloatBitWidth() / 8; }

Value zeroOf(OpBuilder& builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

Value lanePointers(OpBuilder& builder, Location loc, const ElementRun& run) {
  SmallVector<int64_t> steps(run.length);
  for (int64_t i = 0; i < run.length; ++i)
    steps[i] = i * run.stride;
  Value positions = arith::ConstantOp::create(builder, loc, builder.getI64VectorAttr(steps));
  Type pointers = VectorType::get({run.length}, run.pointer.getType());
  return LLVM::GEPOp::create(builder, loc, pointers, run.stored, run.pointer,
                             LLVM::GEPArg(positions));
}

Value laneMask(OpBuilder& builder, Location loc, const ElementRun& run) {
  if (run.mask)
    return run.mask;
  auto type = VectorType::get({run.length}, builder.getI1Type());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, true));
}

/// Lanes last to first.
Value reversed(OpBuilder& builder, Location loc, Value vector) {
  const auto length = static_cast<int32_t>(cast<VectorType>(vector.getType()).getNumElements());
  SmallVector<int32_t> lanes;
  for (int32_t lane = length; lane-- > 0;)
    lanes.push_back(lane);
  return LLVM::ShuffleVectorOp::create(builder, loc, vector, vector, lanes);
}

/// A run of stride -1 as one of stride 1, from its last element on.
ElementRun fromLast(OpBuilder& builder, Location loc, ElementRun run) {
  run.pointer = LLVM::GEPOp::create(builder, loc, run.pointer.getType(), run.stored, run.pointer,
                                    LLVM::GEPArg(static_cast<int32_t>(1 - run.length)));
  run.stride = 1;
  if (run.mask)
    run.mask = reversed(builder, loc, run.mask);
  return run;
}

} // namespace

Value VectorMemory::scalar(OpBuilder& builder, Location loc, unsigned number) {
  Type i64 = builder.getI64Type();
  Value address = LLVM::GEPOp::create(builder, loc, scalars_.getType(), i64, scalars_,
                                      LLVM::GEPArg(static_cast<int32_t>(number)));
  return LLVM::LoadOp::create(builder, loc, i64, address);
}

Value VectorMemory::load(OpBuilder& builder, Location loc, const ElementRun& run) {
  const unsigned alignment = byteWidth(run);
  if (run.length == 0)
    return LLVM::LoadOp::create(builder, loc, run.stored, run.pointer, alignment);
  if (run.stride == -1)
    return reversed(builder, loc, load(builder, loc, fromLast(builder, loc, run)));
  auto type = VectorType::get({run.length}, run.stored);
  if (run.stride != 1)
    return LLVM::masked_gather::create(builder, loc, type, lanePointers(builder, loc, run),
                                       laneMask(builder, loc, run),
                                       ValueRange{zeroOf(builder, loc, type)}, alignment);
  if (run.mask)
    return LLVM::MaskedLoadOp::create(builder, loc, type, run.pointer, run.mask,
                                      zeroOf(builder, loc, type),
                                      builder.getI32IntegerAttr(alignment), UnitAttr());
  return LLVM::LoadOp::create(builder, loc, type, run.pointer, alignment);
}

void VectorMemory::store(OpBuilder& builder, Location loc, const ElementRun& run, Value value) {
  const unsigned alignment = byteWidth(run);
  if (run.length != 0 && run.stride == -1)
    return store(builder, loc, fromLast(builder, loc, run), reversed(builder, loc, value));
  if (run.length != 0 && run.stride != 1)
    LLVM::masked_scatter::create(builder, loc, value, lanePointers(builder, loc, run),
                                 laneMask(builder, loc, run), alignment);
  else if (run.length != 0 && run.mask)
    LLVM::MaskedStoreOp::create(builder, loc, value, run.pointer, run.mask, alignment);
  else
    LLVM::StoreOp::create(builder, loc, value, run.pointer, alignment);
}

} // namespace titan::codegen
