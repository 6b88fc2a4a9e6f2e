#include "compiler/Shard/FunctionPlacements.h"
#include "compiler/Shard/InsertCollectives.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "runtime/program/Microbatches.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PARTITION
#include "compiler/Shard/Passes.h.inc"

namespace {

bool isCut(const ValuePlacement& placement) {
  return llvm::any_of(placement, [](AxisPlacement on) { return on.isShard(); });
}

/// Microbatches and states are what is cut: inputs are read by the loop alone.
LogicalResult checkCuts(func::FuncOp function, const FunctionPlacements& placements) {
  for (BlockArgument argument : function.getArguments()) {
    const unsigned number = argument.getArgNumber();
    if (!isCut(placements[argument]) || function.getArgAttr(number, ir::tag::state))
      continue;
    if (!function.getArgAttr(number, ir::tag::input))
      return function.emitError("argument ")
             << number << " is cut by " << toAttribute(placements[argument], placements.mesh())
             << ": only inputs and states can be divided";
    for (Operation* user : argument.getUsers())
      if (!isa<accum::LoopOp>(user))
        return user->emitError("an operand is cut by ")
               << toAttribute(placements[argument], placements.mesh())
               << ": only the batches of the loop can be divided";
  }
  WalkResult walked = function.getBody().walk([&](accum::LoopOp loop) -> WalkResult {
    if (loop.getStacked() > 0 && isCut(placements[loop.getStacks().front()]))
      return loop.emitError("stacks ")
             << loop.getStacked() << " results: rows of several ranks cannot be joined";
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// Makes `loop` run the iterations of one rank, with its index the number of the microbatch.
void divide(accum::LoopOp loop, const Recipe& recipe) {
  loop.setCount(recipe.localMicrobatches());
  BlockArgument index = loop.getIndex();
  if (index.use_empty())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&loop.getBlock());
  const Location loc = loop.getLoc();
  const Affine number = microbatchNumber(recipe);
  SmallVector<OpOperand*> uses =
      llvm::map_to_vector(index.getUses(), [](OpOperand& use) { return &use; });
  Value sum;
  for (const Affine::Term& term : number.terms) {
    Value variable = index;
    if (term.variable != 0)
      variable = dist::CoordinateOp::create(
          builder, loc, recipe.mesh.axes[term.variable - Affine::meshVariable(0)].name);
    if (term.stride != 1)
      variable = arith::MulIOp::create(builder, loc, variable,
                                       arith::ConstantIndexOp::create(builder, loc, term.stride));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, variable).getResult() : variable;
  }
  for (OpOperand* use : uses)
    use->set(sum);
}

void removePlacements(func::FuncOp function) {
  function.getBody().walk([](Operation* op) { op->removeAttr(dist::placementsTag); });
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, dist::placementTag);
}

LogicalResult partition(func::FuncOp function, const Recipe& recipe) {
  FailureOr<FunctionPlacements> placements =
      FunctionPlacements::of(function, FunctionPlacements::Source::Attributes);
  if (failed(placements) || failed(checkCuts(function, *placements)) ||
      failed(insertCollectives(function, *placements, recipe)))
    return failure();
  function.walk([&](accum::LoopOp loop) {
    if (llvm::any_of(loop.getBatches(), [&](Value batch) { return isCut((*placements)[batch]); }))
      divide(loop, recipe);
  });
  placements->localizeTypes();
  removePlacements(function);
  return success();
}

struct Partition : impl::PartitionBase<Partition> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe))
      return signalPassFailure();
    if (!dist::meshOf(module))
      return;
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(partition(function, *recipe)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace titan
