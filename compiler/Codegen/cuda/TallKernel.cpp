#include "compiler/Codegen/cuda/TallKernel.h"

#include "compiler/Codegen/cuda/ThreadMemory.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <bit>

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Of a block: with four rows of a warp beside each other, each reads 256 bytes of f32.
constexpr int64_t mostAcross = 8;

int64_t bytesOf(kernel::ReduceOp op) {
  return op.getType().isIndex() ? 8 : op.getType().getIntOrFloatBitWidth() / 8;
}

} // namespace

std::optional<TallPlan> planTallColumns(const LoopNest& nest) {
  const DimSet reduced = nest.allDims() & ~nest.parallelDims();
  if (!nest.blockDim() || nest.reductions.empty())
    return std::nullopt;
  TallPlan plan;
  plan.owned = listOf(nest.parallelDims());
  plan.reduced = listOf(reduced);
  SmallVector<int64_t> columns;
  for (unsigned dim : plan.owned)
    columns.push_back(nest.extents[dim]);
  plan.chunks = chunksOf(columns);
  plan.rows = nest.pointsOf(reduced);
  if (plan.rows < tallColumn)
    return std::nullopt;
  plan.across =
      std::min(mostAcross, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(plan.chunks))));
  int64_t meetingBytes = 0;
  for (const Reduction& reduction : nest.reductions) {
    const int64_t bytes = bytesOf(reduction.op);
    if (reduction.over != reduced || reduction.level != 0 || bytes == 0)
      return std::nullopt;
    meetingBytes += plan.threads() * chunkLength * bytes;
  }
  const bool readsRows =
      llvm::any_of(nest.outs, [&](const Access& out) { return (out.dims() & reduced) != 0; });
  if (readsRows || meetingBytes > mostDeclaredBytes)
    return std::nullopt;
  return plan;
}

void TallKernel::emit() {
  BodyEmitter::Scope root(body, {});
  body.hoist(roots());
  int64_t bytes = 0;
  SmallVector<Value> start;
  for (const Reduction& reduction : nest.reductions) {
    begins.push_back(bytes);
    bytes += plan.threads() * chunkLength * bytesOf(reduction.op);
    start.push_back(identity(reduction.op, chunkLength));
  }
  shared = kernels.shared(builder, loc, bytes);

  SmallVector<Value> places =
      splitNumber(builder, loc, threadNumber(builder, loc), {columnSlots, plan.across});
  const Value slot = places[0];
  column = places[1];
  Value number = column, isIn;
  if (plan.blocks() > 1)
    number = arith::AddIOp::create(
        builder, loc, column,
        arith::MulIOp::create(builder, loc, blockNumber(builder, loc), body.index(plan.across)));
  if (plan.blocks() * plan.across != plan.chunks)
    isIn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number,
                                 body.index(plan.chunks));

  // Barriers are for all threads: they stand outside of what a thread without columns leaves out.
  SmallVector<Value> sums = when(isIn, start, [&] {
    return inChunk(plan.owned, number, start,
                   [&](ValueRange carried) { return sumsOfSlot(slot, carried); });
  });
  for (auto [i, sum] : llvm::enumerate(sums))
    LLVM::StoreOp::create(builder, loc, sum, place(i, slot, sum.getType()), widestAccess);
  emitBarrier(builder, loc);
  Value writes = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, slot, body.index(0));
  if (isIn)
    writes = arith::AndIOp::create(builder, loc, writes, isIn);
  when(writes, {}, [&] {
    inChunk(plan.owned, number, {}, [&](ValueRange) {
      meet(sums);
      return SmallVector<Value>();
    });
    return SmallVector<Value>();
  });
}

/// In the lanes of a chunk: the terms of every row that the slot has.
SmallVector<Value> TallKernel::sumsOfSlot(Value slot, ValueRange start) {
  SmallVector<Value> wanted;
  for (const Reduction& reduction : nest.reductions)
    wanted.push_back(kernel::ReduceOp(reduction.op).getValue());
  body.hoist(wanted);
  return emitLoop(
      builder, loc, slot, body.index(plan.rows), columnSlots, start,
      [&](Value row, ValueRange carried) {
        SmallVector<std::pair<unsigned, Value>> point;
        for (auto [dim, at] :
             llvm::zip_equal(plan.reduced, splitNumber(builder, loc, row, extentsOf(plan.reduced))))
          point.push_back({dim, at});
        BodyEmitter::Scope scope(body, point);
        SmallVector<Value> next;
        for (auto [reduction, value, sum] : llvm::zip_equal(nest.reductions, wanted, carried))
          next.push_back(combineTerm(reduction.op, sum, body.getLanes(value)));
        return next;
      });
}

/// In the lanes of a chunk, in its first thread: the sums of all slots, and the results. `sums` are
/// those of slot 0.
void TallKernel::meet(ValueRange sums) {
  SmallVector<Value> totals = emitLoop(
      builder, loc, body.index(1), body.index(columnSlots), 1, sums,
      [&](Value slot, ValueRange carried) {
        SmallVector<Value> next;
        for (auto [i, total] : llvm::enumerate(carried)) {
          Value sum = LLVM::LoadOp::create(builder, loc, total.getType(),
                                           place(i, slot, total.getType()), widestAccess);
          next.push_back(
              combine(builder, loc, kernel::ReduceOp(nest.reductions[i].op).getKind(), total, sum));
        }
        return next;
      });
  for (auto [reduction, total] : llvm::zip_equal(nest.reductions, totals))
    body.setReduction(reduction.op, sumOfChunk(reduction.op, total));
  storeOuts(outsWhere([](DimSet) { return true; }), nest.parallelDims());
}

Value TallKernel::place(size_t sum, Value slot, Type type) {
  Value begin = LLVM::GEPOp::create(builder, loc, shared.getType(), builder.getI8Type(), shared,
                                    LLVM::GEPArg(static_cast<int32_t>(begins[sum])));
  Value number = arith::AddIOp::create(
      builder, loc, arith::MulIOp::create(builder, loc, slot, body.index(plan.across)), column);
  number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), number);
  return LLVM::GEPOp::create(builder, loc, shared.getType(), type, begin, LLVM::GEPArg(number));
}

} // namespace titan::codegen::cuda
