#include "compiler/Schedule/Passes.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "compiler/Schedule/Passes.h.inc"

namespace {

LogicalResult verifyPhases(func::FuncOp step) {
  Operation* update = nullptr;
  for (Operation& op : step.getBody().front()) {
    // Constants have no place in time.
    if (isa<ir::ConstantOp, arith::ConstantOp, kernel::EmptyOp, dist::CoordinateOp, func::ReturnOp>(
            op))
      continue;
    bool updates = ir::getPhase(&op) == ir::Phase::Update;
    if (updates && !update)
      update = &op;
    if (!updates && update)
      return op.emitError("stands after the first op of phase update");
  }
  bool ok = true;
  step.walk([&](accum::LoopOp loop) {
    for (Operation& op : loop.getBlock())
      if (ir::getPhase(&op) == ir::Phase::Update) {
        op.emitError("is of phase update and stands in the microbatch loop");
        ok = false;
      }
  });
  return success(ok);
}

LogicalResult verifyNoKernels(ModuleOp module) {
  WalkResult walked = module.walk<WalkOrder::PreOrder>([](Operation* op) -> WalkResult {
    if (isa<kernel::KernelDialect>(op->getDialect()) && !isa<kernel::EmptyOp>(op))
      return op->emitError("is a kernel, which only *lower* makes");
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult verifyBarriers(func::FuncOp step) {
  bool ok = true;
  step.walk([&](ir::BarrierOp barrier) {
    for (Operation* user : barrier->getUsers())
      if (ir::getPhase(user) == ir::Phase::Forward) {
        user->emitError("of the forward pass reads a barrier, which starts what the backward pass "
                        "computes again");
        ok = false;
      }
  });
  return success(ok);
}

struct VerifySchedule : impl::VerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (!step) {
      getOperation().emitError("the module has no @step");
      return signalPassFailure();
    }
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe) || failed(verifyNoKernels(getOperation())) || failed(verifyPhases(step)) ||
        failed(verifyLoopChain(step, recipe->localMicrobatches(), /*mayBeInlined=*/true)) ||
        failed(verifyBarriers(step)))
      signalPassFailure();
  }
};

} // namespace

} // namespace titan
