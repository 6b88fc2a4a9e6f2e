#include "compiler/Codegen/cuda/Threads.h"

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "compiler/Codegen/kernel/Combine.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

template <typename Op> Value numberOf(OpBuilder& builder, Location loc) {
  Value number = Op::create(builder, loc, builder.getI32Type());
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), number);
}

Value i32Constant(OpBuilder& builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc,
                                   builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value shuffleWord(OpBuilder& builder, Location loc, Value word, int64_t distance) {
  return NVVM::ShflOp::create(builder, loc, word.getType(), i32Constant(builder, loc, -1), word,
                              i32Constant(builder, loc, distance),
                              i32Constant(builder, loc, warpSize - 1), NVVM::ShflKind::bfly,
                              UnitAttr());
}

} // namespace

Value blockNumber(OpBuilder& builder, Location loc) {
  return numberOf<NVVM::BlockIdXOp>(builder, loc);
}

Value threadNumber(OpBuilder& builder, Location loc) {
  return numberOf<NVVM::ThreadIdXOp>(builder, loc);
}

int64_t flatBlocks(int64_t units) { return llvm::divideCeilSigned(units, flatThreads); }

void overUnits(OpBuilder& builder, Location loc, int64_t units,
               llvm::function_ref<void(Value unit)> body) {
  ThreadBuilder thread(builder, loc);
  Value unit =
      thread.add(thread.mul(blockNumber(builder, loc), flatThreads), threadNumber(builder, loc));
  if (units % flatThreads == 0)
    return body(unit);
  thread.when(thread.isBelow(unit, units), [&] { body(unit); });
}

void emitBarrier(OpBuilder& builder, Location loc) { NVVM::Barrier0Op::create(builder, loc); }

void emitWarpBarrier(OpBuilder& builder, Location loc) {
  NVVM::SyncWarpOp::create(builder, loc, i32Constant(builder, loc, -1));
}

Value ballot(OpBuilder& builder, Location loc, Value flag) {
  return NVVM::VoteSyncOp::create(builder, loc, builder.getI32Type(), i32Constant(builder, loc, -1),
                                  flag, NVVM::VoteSyncKind::ballot);
}

Value shuffleXor(OpBuilder& builder, Location loc, Value value, int64_t distance) {
  Type type = value.getType(), i32 = builder.getI32Type(), i64 = builder.getI64Type();
  if (type.getIntOrFloatBitWidth() == 32)
    return shuffleWord(builder, loc, value, distance);
  Value bits = type.isInteger() ? value : arith::BitcastOp::create(builder, loc, i64, value);
  Value half = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
  Value low = arith::TruncIOp::create(builder, loc, i32, bits);
  Value high =
      arith::TruncIOp::create(builder, loc, i32, arith::ShRUIOp::create(builder, loc, bits, half));
  low = arith::ExtUIOp::create(builder, loc, i64, shuffleWord(builder, loc, low, distance));
  high = arith::ExtUIOp::create(builder, loc, i64, shuffleWord(builder, loc, high, distance));
  bits = arith::OrIOp::create(builder, loc, low, arith::ShLIOp::create(builder, loc, high, half));
  return type.isInteger() ? bits : arith::BitcastOp::create(builder, loc, type, bits).getResult();
}

Value combineLanes(OpBuilder& builder, Location loc, kernel::ReduceKind kind, Value value,
                   int64_t lanes) {
  for (int64_t distance = lanes / 2; distance >= 1; distance /= 2)
    value = combine(builder, loc, kind, value, shuffleXor(builder, loc, value, distance));
  return value;
}

SmallVector<Value> splitNumber(OpBuilder& builder, Location loc, Value number,
                               ArrayRef<int64_t> extents) {
  // Division of 32 bits takes a third of what one of 64 bits takes.
  int64_t points = 1;
  for (int64_t extent : extents)
    points *= extent;
  const bool isNarrow = points <= std::numeric_limits<int32_t>::max();
  Type index = builder.getIndexType(), type = isNarrow ? builder.getI32Type() : index;
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  auto widen = [&](Value value) -> Value {
    return isNarrow ? arith::IndexCastUIOp::create(builder, loc, index, value).getResult() : value;
  };
  SmallVector<Value> coordinates(extents.size());
  if (!extents.empty())
    coordinates[0] = number;
  if (isNarrow)
    number = arith::IndexCastUIOp::create(builder, loc, type, number);
  for (size_t i = extents.size(); i-- > 1;) {
    if (extents[i] == 1) {
      coordinates[i] = widen(constant(0));
      continue;
    }
    coordinates[i] = widen(arith::RemUIOp::create(builder, loc, number, constant(extents[i])));
    number = arith::DivUIOp::create(builder, loc, number, constant(extents[i]));
    coordinates[0] = widen(number);
  }
  return coordinates;
}

} // namespace titan::codegen::cuda
