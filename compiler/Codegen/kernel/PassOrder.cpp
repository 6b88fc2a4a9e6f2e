#include "compiler/Codegen/kernel/PassOrder.h"

using namespace mlir;

namespace titan::codegen {

void collectSources(const LoopNest& nest, Value root, llvm::DenseSet<Value>& sources) {
  SmallVector<Value> pending = {root};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation* definition = value.getDefiningOp();
    auto reduce = dyn_cast_or_null<kernel::ReduceOp>(definition);
    if (!definition || (reduce && nest.reductionOf(reduce).combines()))
      sources.insert(value);
    else
      llvm::append_range(pending, definition->getOperands());
  }
}

namespace {

bool isAlike(const Access& a, const Access& b) {
  return a.offset == b.offset && a.strides == b.strides;
}

} // namespace

SmallVector<ReductionGroup> groupReductions(const LoopNest& nest, DimSet bound,
                                            llvm::function_ref<bool(const Reduction&)> wanted) {
  SmallVector<ReductionGroup> groups;
  for (unsigned level = 0; level < nest.levels(); ++level) {
    size_t first = groups.size();
    for (const Reduction& reduction : nest.reductions) {
      if (reduction.level != level || !reduction.combines() || !wanted(reduction))
        continue;
      auto group = std::find_if(groups.begin() + first, groups.end(), [&](const ReductionGroup& g) {
        return g.front()->over == reduction.over &&
               (g.front()->space & ~bound) == (reduction.space & ~bound);
      });
      if (group == groups.end())
        groups.push_back({&reduction});
      else
        group->push_back(&reduction);
    }
  }
  return groups;
}

SmallVector<unsigned> outsWrittenWith(const LoopNest& nest, DimSet bound,
                                      const ReductionGroup& group, ArrayRef<unsigned> outs) {
  auto yielded = cast<kernel::YieldOp>(kernel::FusedOp(nest.op).getBlock().getTerminator());
  auto sourcesOf = [&](unsigned out) {
    llvm::DenseSet<Value> sources;
    collectSources(nest, yielded.getValues()[out], sources);
    return sources;
  };
  SmallVector<unsigned> together, later;
  for (unsigned out : outs) {
    llvm::DenseSet<Value> sources = sourcesOf(out);
    bool waits = llvm::any_of(
        group, [&](const Reduction* r) { return sources.contains(kernel::ReduceOp(r->op)); });
    bool samePoints = (nest.outs[out].dims() & ~bound) == (group.front()->space & ~bound) &&
                      (nest.parallelDims() & ~nest.outs[out].dims()) == 0;
    (waits || !samePoints ? later : together).push_back(out);
  }
  llvm::erase_if(together, [&](unsigned out) {
    return llvm::any_of(later, [&](unsigned other) {
      return llvm::any_of(sourcesOf(other), [&](Value source) {
        auto in = dyn_cast<BlockArgument>(source);
        return in && in.getArgNumber() < nest.ins.size() &&
               isAlike(nest.ins[in.getArgNumber()], nest.outs[out]);
      });
    });
  });
  return together;
}

} // namespace titan::codegen
