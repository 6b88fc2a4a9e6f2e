#include "compiler/Codegen/cuda/ChunkKernel.h"

#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/Threads.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

constexpr int64_t columnThreads = 128;

} // namespace

std::optional<ChunkPlan> planChunks(const LoopNest& nest) {
  if (nest.rank() > 0 && !nest.blockDim())
    return std::nullopt;
  ChunkPlan plan;
  plan.owned = listOf(nest.parallelDims());
  plan.reduced = listOf(nest.allDims() & ~nest.parallelDims());
  for (const Reduction& reduction : nest.reductions)
    if (reduction.combines() && (reduction.space & ~nest.parallelDims()) != reduction.over)
      return std::nullopt;
  if (!plan.owned.empty()) {
    SmallVector<int64_t> extents;
    for (unsigned dim : plan.owned)
      extents.push_back(nest.extents[dim]);
    plan.chunks = chunksOf(extents);
  }
  return plan;
}

int64_t ChunkPlan::threads() const {
  const auto warps = static_cast<int64_t>(llvm::alignTo(chunks, warpSize));
  return std::min(reduced.empty() ? flatThreads : columnThreads, warps);
}

void ChunkKernel::emit() {
  BodyEmitter::Scope root(body, {});
  body.hoist(roots());
  Value number = threadNumber(builder, loc);
  if (plan.blocks() > 1)
    number = arith::AddIOp::create(
        builder, loc, number,
        arith::MulIOp::create(builder, loc, blockNumber(builder, loc), body.index(plan.threads())));
  Value isIn;
  if (plan.blocks() * plan.threads() != plan.chunks)
    isIn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, number,
                                 body.index(plan.chunks));
  when(isIn, {}, [&] {
    auto point = [&](ValueRange) {
      emitPoint();
      return SmallVector<Value>();
    };
    return plan.owned.empty() ? point({}) : inChunk(plan.owned, number, {}, point);
  });
}

void ChunkKernel::emitPoint() {
  BodyEmitter::Scope scope(body, {});
  const DimSet owned = nest.parallelDims();
  SmallVector<unsigned> left = outsWhere([](DimSet) { return true; });
  SmallVector<ReductionGroup> groups =
      groupReductions(nest, owned, [](const Reduction&) { return true; });
  for (const ReductionGroup& group : groups) {
    SmallVector<unsigned> together;
    if (&group == &groups.back())
      together = outsWrittenWith(nest, owned, group, left);
    emitReductions(group, together);
    llvm::erase_if(left, [&](unsigned out) { return llvm::is_contained(together, out); });
  }
  // What walks the most dimensions first: an out may lie on an in that it walks alike.
  llvm::sort(left, [&](unsigned a, unsigned b) {
    return std::pair(-llvm::popcount(nest.outs[a].dims()), a) <
           std::pair(-llvm::popcount(nest.outs[b].dims()), b);
  });
  while (!left.empty()) {
    const DimSet dims = nest.outs[left.front()].dims() & ~owned;
    SmallVector<unsigned> group, others;
    for (unsigned out : left)
      ((nest.outs[out].dims() & ~owned) == dims ? group : others).push_back(out);
    SmallVector<Value> wanted;
    for (unsigned out : group)
      wanted.push_back(yielded()[out]);
    BodyEmitter::Scope inner(body, {});
    overPoints(listOf(dims), wanted, {}, [&](ValueRange) {
      storeOuts(group, owned | dims);
      return SmallVector<Value>();
    });
    left = others;
  }
}

void ChunkKernel::emitReductions(const ReductionGroup& group, ArrayRef<unsigned> together) {
  SmallVector<Value> wanted, sums;
  for (const Reduction* reduction : group) {
    kernel::ReduceOp op = reduction->op;
    wanted.push_back(op.getValue());
    const bool varies = body.lanes() && contains(nest.dependence(op.getValue()), body.lanes()->dim);
    sums.push_back(identity(op, varies ? body.lanes()->length : 0));
  }
  SmallVector<Value> written;
  for (unsigned out : together)
    written.push_back(yielded()[out]);
  SmallVector<Value> all = wanted;
  llvm::append_range(all, written);
  SmallVector<Value> totals =
      overPoints(listOf(group.front()->over), all, sums, [&](ValueRange carried) {
        SmallVector<Value> next, results;
        for (auto [value, sum] : llvm::zip_equal(wanted, carried))
          next.push_back(isa<VectorType>(sum.getType()) ? body.getLanes(value) : body.get(value));
        for (Value value : written)
          results.push_back(body.get(value));
        for (auto [i, term] : llvm::enumerate(next))
          term = combineTerm(group[i]->op, carried[i], term);
        writeOuts(together, results, nest.parallelDims() | group.front()->over);
        return next;
      });
  for (auto [reduction, total] : llvm::zip_equal(group, totals))
    body.setReduction(reduction->op, total);
}

} // namespace titan::codegen::cuda
