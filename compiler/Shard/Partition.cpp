#include "compiler/Shard/FunctionPlacements.h"
#include "compiler/Shard/InsertCollectives.h"
#include "compiler/Shard/JoinStacks.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Support/LoopChain.h"
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
      if (!isa<accum::LoopOp>(user) && !placements.isBatchReshape(user))
        return user->emitError("an operand is cut by ")
               << toAttribute(placements[argument], placements.mesh())
               << ": only the batches of the loop can be divided";
  }
  return success();
}

/// `value`, of a counter that `index` is and of this rank's coordinates.
Value evaluate(OpBuilder& builder, Location loc, const Affine& value, Value index,
               ArrayRef<MeshAxis> mesh) {
  Value sum;
  for (const Affine::Term& term : value.terms) {
    Value variable = index;
    if (term.variable != 0)
      variable = dist::CoordinateOp::create(builder, loc,
                                            mesh[term.variable - Affine::meshVariable(0)].name);
    if (term.stride != 1)
      variable = arith::MulIOp::create(builder, loc, variable,
                                       arith::ConstantIndexOp::create(builder, loc, term.stride));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, variable).getResult() : variable;
  }
  return sum ? sum : arith::ConstantIndexOp::create(builder, loc, 0).getResult();
}

/// Makes `loop` run the iterations of one rank, with its index still that among all of them.
void divide(accum::LoopOp loop, const MicrobatchLoop& division, ArrayRef<MeshAxis> mesh) {
  loop.setCount(division.local);
  BlockArgument index = loop.getIndex();
  if (index.use_empty() || division.index == Affine::counter(0))
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&loop.getBlock());
  SmallVector<OpOperand*> uses =
      llvm::map_to_vector(index.getUses(), [](OpOperand& use) { return &use; });
  Value among = evaluate(builder, loop.getLoc(), division.index, index, mesh);
  for (OpOperand* use : uses)
    use->set(among);
}

/// The loops are those that the recipe asks for: sums over ranks stand behind them.
LogicalResult checkLoops(func::FuncOp function, const FunctionPlacements& placements) {
  ArrayRef<MicrobatchLoop> loops = placements.loops();
  size_t depth = 0;
  WalkResult walked = function.walk<WalkOrder::PreOrder>([&](accum::LoopOp loop) -> WalkResult {
    if (llvm::none_of(loop.getBatches(), [&](Value batch) { return isCut(placements[batch]); }))
      return WalkResult::advance();
    const int64_t count = depth < loops.size() ? loops[depth].count : 0;
    if (++depth; static_cast<int64_t>(loop.getCount()) == count)
      return WalkResult::advance();
    return loop.emitError("runs ") << loop.getCount() << " iterations at depth " << depth - 1
                                   << ", mesh.sync and mesh.sync_every ask for " << count;
  });
  return failure(walked.wasInterrupted());
}

void removePlacements(func::FuncOp function) {
  function.getBody().walk([](Operation* op) { op->removeAttr(dist::placementsTag); });
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, dist::placementTag);
}

/// The leaf that a rank has of a tree is 0 + its term.
void addTerms(func::FuncOp function) {
  OpBuilder zeros = OpBuilder::atBlockBegin(&function.getBody().front());
  function.walk([&](accum::LoopOp loop) {
    if (loop.getOrder() == accum::Order::Tree)
      makeRunning(loop, zeros);
  });
}

LogicalResult partition(func::FuncOp function, const Recipe& recipe) {
  FailureOr<FunctionPlacements> placements =
      FunctionPlacements::of(function, FunctionPlacements::Source::Attributes);
  if (failed(placements) || failed(checkCuts(function, *placements)) ||
      failed(checkLoops(function, *placements)))
    return failure();
  joinStacks(function, *placements);
  if (failed(insertCollectives(function, *placements, recipe)))
    return failure();
  size_t depth = 0;
  function.walk<WalkOrder::PreOrder>([&](accum::LoopOp loop) {
    if (llvm::any_of(loop.getBatches(), [&](Value batch) { return isCut((*placements)[batch]); }))
      divide(loop, placements->loops()[depth++], recipe.mesh.axes);
  });
  placements->localizeTypes();
  removePlacements(function);
  addTerms(function);
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
