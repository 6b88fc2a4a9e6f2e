// titan-schedule-fit-memory: what memory.limit and memory.remat ask for.
#include "compiler/Schedule/FitMemory.h"

#include "compiler/Schedule/ChooseOverlap.h"
#include "compiler/Schedule/ChunkLoss.h"
#include "compiler/Schedule/MemoryReasons.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Schedule/Rematerialize.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TargetInfo.h"

#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FITMEMORY
#include "compiler/Schedule/Passes.h.inc"

namespace {

using namespace schedule;

/// The plan answers each attempt; the estimate is close, so that few are needed.
constexpr int mostAttempts = 8;

func::FuncOp stepOf(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>(ir::function::step);
}

/// What is decided for a step. Applied to copies while it is sought, to the module once at last.
struct Decision {
  Overlap overlap;
  int64_t chunks = 1;
  int64_t target = 0; ///< live temporaries by the model; 0: nothing is recomputed
};

/// The step with a decision applied, and what the model says of it.
struct Attempt {
  OwningOpRef<ModuleOp> module;
  int64_t estimate = 0;   ///< peak of temporaries by the model, after recomputation
  int64_t recomputed = 0; ///< values
  int64_t bytes = 0;      ///< of the arena, when it has been measured
  bool reachesTarget = true;
};

struct FitMemory : impl::FitMemoryBase<FitMemory> {
  FitMemory() = default;
  FitMemory(MeasurePlan measure, ArrayRef<std::string> disabled)
      : measure(std::move(measure)), passes(OverlapPasses::without(disabled)) {}

  MeasurePlan measure;
  OverlapPasses passes;
  MachineModel machine;
  bool mayCutLoss = true; ///< as fits: neither the recipe nor a tree says into how many pieces
  Overlap asked;          ///< by the recipe: what the module has
  SmallVector<std::pair<Overlap, int64_t>> plans; ///< bytes

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    FailureOr<MachineModel> numbers = getMachine(module);
    if (failed(recipe) || failed(numbers))
      return signalPassFailure();
    machine = *numbers;
    asked = {recipe->mesh.bucket, recipe->mesh.prefetch};
    plans.clear();
    func::FuncOp step = stepOf(module);
    const int64_t limit = recipe->memory.limit, chunks = recipe->memory.lossChunks;
    const bool full = recipe->memory.remat == "full";
    if (!step || step.isDeclaration())
      return;
    mayCutLoss = chunks == 0 && !recipe->mesh.isTree();
    if (chunks > 1 && failed(cutLosses(step, chunks)))
      return signalPassFailure();
    if (limit == 0 && !full)
      return;

    Decision best{asked};
    if (full) {
      FailureOr<Decision> least = leastPlan(module);
      if (failed(least))
        return signalPassFailure();
      best = *least;
    } else if (failed(fit(module, limit, recipe->memory.remat != "none", best))) {
      return signalPassFailure();
    }
    apply(module, best, /*withRemarks=*/true);
  }

  /// In as many pieces as the recipe says, or an error.
  static LogicalResult cutLosses(func::FuncOp step, int64_t chunks) {
    const WalkResult found = step.walk([](ir::CrossEntropyOp) { return WalkResult::interrupt(); });
    if (!found.wasInterrupted())
      return step.emitError("memory.loss_chunks = ")
             << chunks << " has nothing to cut: the loss is no cross-entropy";
    const SmallVector<WholeLoss> whole = chunkLosses(step, chunks, /*withRemarks=*/true);
    for (const WholeLoss& loss : whole)
      emitError(loss.loc) << "memory.loss_chunks = " << chunks << " cannot cut '" << loss.place
                          << "': " << loss.why;
    return success(whole.empty());
  }

  /// Applies `decision` to `module`. Returns the model's peak.
  Attempt apply(ModuleOp module, const Decision& decision, bool withRemarks) {
    Attempt attempt;
    func::FuncOp step = stepOf(module);
    if (decision.overlap != asked) {
      scheduleAnew(module, decision.overlap, passes);
      if (withRemarks)
        reportLowering(module, asked, decision.overlap);
    }
    if (decision.chunks > 1)
      chunkLosses(step, decision.chunks, withRemarks);
    MemoryModel model(step, machine);
    attempt.estimate = model.run().peak();
    if (decision.target > 0 && attempt.estimate > decision.target) {
      Recomputation choice = chooseRecomputation(model, decision.target);
      attempt.estimate = choice.timeline.peak();
      attempt.reachesTarget = choice.fits;
      attempt.recomputed = choice.evicted.count();
      rematerialize(model, choice, withRemarks);
    }
    return attempt;
  }

  Attempt tryOut(ModuleOp module, const Decision& decision) {
    OwningOpRef<ModuleOp> copy = module.clone();
    Attempt attempt = apply(*copy, decision, /*withRemarks=*/false);
    attempt.module = std::move(copy);
    return attempt;
  }

  /// The number of pieces of the loss from which on more pieces do not lower the peak.
  int64_t chooseChunks(ModuleOp module, int64_t target, const Overlap& overlap) {
    const int64_t rows = mayCutLoss ? rowsOf(module) : 0;
    Decision decision{overlap};
    int64_t least = tryOut(module, decision).estimate, best = 1;
    for (int64_t chunks = 2; rows / chunks >= machine.lossRows && least > target; chunks *= 2) {
      decision.chunks = chunks;
      int64_t peak = tryOut(module, decision).estimate;
      if (peak < least) {
        best = chunks;
        least = peak;
      }
    }
    return best;
  }

  /// The most rows of logits that a loss has, whatever dimensions they are spread over.
  static int64_t rowsOf(ModuleOp module) {
    int64_t rows = 0;
    // Finding a region moves ops, so it looks at a copy.
    OwningOpRef<ModuleOp> copy = module.clone();
    stepOf(*copy).walk([&](ir::CrossEntropyOp loss) {
      std::string why;
      FailureOr<LossRegion> region = LossRegion::find(loss, /*chunks=*/0, why);
      if (failed(region))
        return;
      auto type = cast<RankedTensorType>(region->head()->getResult(0).getType());
      rows = std::max(rows, type.getNumElements() / type.getDimSize(type.getRank() - 1));
    });
    return rows;
  }

  /// Tries `decision` and has its plan measured.
  FailureOr<Attempt> measured(ModuleOp module, const Decision& decision) {
    Attempt attempt = tryOut(module, decision);
    FailureOr<int64_t> bytes = permanentBytes(module) + attempt.estimate;
    if (measure)
      bytes = measure(*attempt.module);
    if (failed(bytes))
      return failure();
    attempt.bytes = *bytes;
    return attempt;
  }

  /// The same of a decision on nothing but what is on its way, which is asked for again and again.
  FailureOr<Attempt> measured(ModuleOp module, const Overlap& overlap) {
    auto* known = llvm::find_if(plans, [&](auto& plan) { return plan.first == overlap; });
    if (known == plans.end()) {
      FailureOr<Attempt> attempt = measured(module, Decision{overlap});
      if (succeeded(attempt))
        plans.push_back({overlap, attempt->bytes});
      return attempt;
    }
    Attempt attempt = tryOut(module, Decision{overlap});
    attempt.bytes = known->second;
    return attempt;
  }

  /// The first plan within `limit` with less on its way, else the smallest. That costs time, but
  /// computing again costs more.
  FailureOr<Attempt> searchOverlap(ModuleOp module, int64_t limit, Decision& decision) {
    FailureOr<Attempt> smallest = measured(module, asked);
    if (failed(smallest) || !dist::meshOf(module))
      return smallest;
    for (const Overlap& overlap : lesserOverlaps(module, asked, passes)) {
      if (smallest->bytes <= limit)
        break;
      FailureOr<Attempt> attempt = measured(module, overlap);
      if (failed(attempt))
        return failure();
      if (attempt->bytes < smallest->bytes) {
        smallest = std::move(attempt);
        decision.overlap = overlap;
      }
    }
    return smallest;
  }

  /// The first plan found within `limit`, with its decision, else the smallest of those tried.
  FailureOr<Attempt> search(ModuleOp module, int64_t limit, bool mayRecompute, Decision& decision) {
    FailureOr<Attempt> smallest = searchOverlap(module, limit, decision);
    if (failed(smallest) || smallest->bytes <= limit)
      return smallest;
    // What is no temporary of the step stays; what exceeds the limit is to go from its peak.
    const int64_t target = std::max<int64_t>(1, smallest->estimate - (smallest->bytes - limit));
    decision.chunks = chooseChunks(module, target, decision.overlap);
    // With the rest recomputed the loss may be the peak again: then more pieces.
    for (const int64_t rows = mayCutLoss ? rowsOf(module) : 0;; decision.chunks *= 2) {
      decision.target = mayRecompute ? target : 0;
      for (int i = 0; i < mostAttempts; ++i) {
        FailureOr<Attempt> attempt = measured(module, decision);
        if (failed(attempt))
          return failure();
        const int64_t bytes = attempt->bytes, estimate = attempt->estimate;
        if (bytes <= limit)
          return attempt;
        const bool canGo = attempt->reachesTarget && decision.target > 0;
        if (bytes < smallest->bytes)
          smallest = std::move(attempt);
        // The plan was larger than the model said: ask for so much more.
        decision.target = std::min(decision.target, estimate) - (bytes - limit);
        if (!canGo || decision.target <= 0)
          break;
      }
      if (rows / (decision.chunks * 2) < machine.lossRows)
        break;
    }
    if (!mayRecompute)
      return smallest;
    // The way to the limit may pass by what lowers the peak the most.
    const Decision least = leastMemory(module, decision.overlap);
    FailureOr<Attempt> attempt = measured(module, least);
    if (failed(attempt))
      return failure();
    if (attempt->bytes < smallest->bytes) {
      smallest = std::move(attempt);
      decision = least;
    }
    return smallest;
  }

  LogicalResult fit(ModuleOp module, int64_t limit, bool mayRecompute, Decision& decision) {
    FailureOr<Attempt> found = search(module, limit, mayRecompute, decision);
    if (failed(found))
      return failure();
    if (found->bytes <= limit)
      return success();
    // With another limit the search goes another way: what is named as enough is to be found then.
    for (int i = 0; i < mostAttempts; ++i) {
      Decision another{asked};
      FailureOr<Attempt> again = search(module, found->bytes, mayRecompute, another);
      if (failed(again))
        return failure();
      if (again->bytes <= found->bytes)
        break;
      found = std::move(again);
    }
    refuseLimit(module, stepOf(*found->module), machine, limit, found->bytes, found->recomputed,
                mayRecompute);
    module->setAttr(smallestPlanTag, Builder(module).getI64IntegerAttr(found->bytes));
    return failure();
  }

  /// Everything that lowers the peak, by the model.
  Decision leastMemory(ModuleOp module, const Overlap& overlap) {
    Decision decision{overlap};
    decision.chunks = chooseChunks(module, 0, overlap);
    Decision next = decision;
    int64_t peak = tryOut(module, decision).estimate;
    // A little at a time: asking for the impossible would recompute what never was at the peak.
    for (;;) {
      next.target = peak - std::max<int64_t>(1, peak / 50);
      Attempt attempt = tryOut(module, next);
      if (!attempt.reachesTarget || attempt.estimate >= peak)
        return decision;
      decision = next;
      peak = attempt.estimate;
    }
  }

  /// The same, unless its plan is no smaller than that of a step in which nothing is recomputed.
  FailureOr<Decision> leastPlan(ModuleOp module) {
    const Decision least = leastMemory(module, asked);
    FailureOr<Attempt> all = measured(module, least), none = measured(module, asked);
    if (failed(all) || failed(none))
      return failure();
    return all->bytes < none->bytes ? least : Decision{asked};
  }
};

} // namespace

std::unique_ptr<Pass> createFitMemory(MeasurePlan measure, ArrayRef<std::string> disabled) {
  return std::make_unique<FitMemory>(std::move(measure), disabled);
}

} // namespace titan
