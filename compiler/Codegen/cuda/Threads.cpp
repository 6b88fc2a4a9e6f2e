#include "compiler/Codegen/cuda/Threads.h"

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/kernel/Combine.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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

void emitBarrier(OpBuilder& builder, Location loc) { NVVM::Barrier0Op::create(builder, loc); }

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
  SmallVector<Value> coordinates(extents.size());
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value).getResult();
  };
  for (size_t i = extents.size(); i-- > 0;) {
    if (i == 0)
      coordinates[0] = number;
    else if (extents[i] == 1)
      coordinates[i] = index(0);
    else
      coordinates[i] = arith::RemUIOp::create(builder, loc, number, index(extents[i]));
    if (i != 0 && extents[i] != 1)
      number = arith::DivUIOp::create(builder, loc, number, index(extents[i]));
  }
  return coordinates;
}

} // namespace titan::codegen::cuda
