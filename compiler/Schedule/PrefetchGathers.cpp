// titan-schedule-prefetch-gathers: parameters are on their way before they are read.
#include "compiler/Schedule/MoveAhead.h"
#include "compiler/Schedule/OverlapCollectives.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PREFETCHGATHERS
#include "compiler/Schedule/Passes.h.inc"

namespace schedule {

static void prefetchIn(Block& block, int64_t count, bool withRemarks) {
  SmallVector<dist::StartOp> starts;
  for (auto start : block.getOps<dist::StartOp>())
    if (gathersForReaders(start))
      starts.push_back(start);
  for (auto [i, start] : llvm::enumerate(starts)) {
    Operation* place = starts[i - std::min<size_t>(i, count)].getWait();
    const Lead lead = leadOf(start, /*ownOnly=*/false);
    moveAhead(start, lead, lead.mayStandBefore(place) ? place : lead.behind->getNextNode());
  }
  if (withRemarks)
    for (dist::StartOp start : starts)
      reportOverlap(start, "prefetch-gathers");
}

void prefetchGathers(func::FuncOp function, int64_t count, bool withRemarks) {
  if (count > 0)
    function.walk<WalkOrder::PreOrder>(
        [&](Block* block) { prefetchIn(*block, count, withRemarks); });
}

} // namespace schedule

namespace {

struct PrefetchGathers : impl::PrefetchGathersBase<PrefetchGathers> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      schedule::prefetchGathers(function, recipe->mesh.prefetch, /*withRemarks=*/true);
  }
};

} // namespace

} // namespace titan
