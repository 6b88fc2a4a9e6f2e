// titan-schedule-overlap-reductions: sums are under way while the next gradients are computed.
#include "compiler/Schedule/OverlapCollectives.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Schedule/Postponer.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_OVERLAPREDUCTIONS
#include "compiler/Schedule/Passes.h.inc"

namespace schedule {

namespace {

/// A communicator has room for 64, gathers included.
constexpr size_t mostUnderWay = 40;

class UnderWay : public Postponer {
public:
  explicit UnderWay(size_t most) : most(most) {}

  SmallVector<dist::StartOp> starts; ///< all that were seen

private:
  const size_t most;
  SmallVector<dist::WaitOp> waits; ///< of what is under way, the oldest first

  void take(Operation* op, Operation* next) override {
    auto wait = dyn_cast<dist::WaitOp>(op);
    if (!wait || gathersForReaders(wait.getStart()))
      return;
    dist::StartOp start = wait.getStart();
    starts.push_back(start);
    waits.push_back(wait);
    holdBack(wait.getResults());
    // A sum of parts follows one of wholes: each hides behind the next of its own.
    auto isAlike = [&](dist::WaitOp other) {
      return other.getStart().getCollective() == start.getCollective() &&
             other.getStart().getAxes() == start.getAxes();
    };
    while (llvm::count_if(waits, isAlike) > static_cast<int64_t>(most))
      await(llvm::find_if(waits, isAlike), next);
    while (waits.size() > mostUnderWay)
      release(next);
  }

  bool release(Operation* next) override {
    if (waits.empty())
      return false;
    await(waits.begin(), next);
    return true;
  }

  void await(dist::WaitOp* place, Operation* next) {
    dist::WaitOp wait = *place;
    waits.erase(place);
    wait->moveBefore(next);
    give(wait.getResults(), next);
  }
};

} // namespace

void overlapReductions(func::FuncOp function, int64_t count, bool withRemarks) {
  if (count == 0)
    return;
  function.walk<WalkOrder::PreOrder>([&](Block* block) {
    UnderWay sums(count);
    sums.run(*block);
    if (withRemarks)
      for (dist::StartOp start : sums.starts)
        reportOverlap(start, "overlap-reductions");
  });
}

} // namespace schedule

namespace {

struct OverlapReductions : impl::OverlapReductionsBase<OverlapReductions> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      schedule::overlapReductions(function, recipe->mesh.prefetch, /*withRemarks=*/true);
  }
};

} // namespace

} // namespace titan
