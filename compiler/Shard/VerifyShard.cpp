#include "compiler/Shard/FunctionPlacements.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Shard/VerifyPadding.h"
#include "compiler/Support/LocalType.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TaggedFunction.h"
#include "runtime/program/Collective.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_VERIFYSHARD
#include "compiler/Shard/Passes.h.inc"

namespace {

/// Does `function` take and return each state in the type that a rank holds?
LogicalResult verifyStateTypes(func::FuncOp function, const SymbolTable& symbols,
                               ArrayRef<MeshAxis> mesh) {
  auto check = [&](StringRef symbol, Type type, StringRef verb) -> LogicalResult {
    auto state = symbols.lookup<ir::StateOp>(symbol);
    if (!state)
      return success();
    FailureOr<RankedTensorType> local = localTypeOf(state, mesh);
    if (failed(local) || type == *local)
      return LogicalResult(local);
    return function.emitError() << verb << " state @" << state.getSymName() << " as " << type
                                << ", a rank has " << *local << " of it";
  };
  const TaggedFunction tags(function);
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(check(tags.argumentTag(i, ir::tag::state), type, "takes")))
      return failure();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(check(tags.resultTag(i, ir::tag::state), type, "returns")))
      return failure();
  return success();
}

/// The mesh is that of the recipe; one rank has none.
LogicalResult verifyMesh(ModuleOp module, ArrayRef<MeshAxis> axes) {
  dist::MeshAttr mesh = dist::meshOf(module);
  if (!mesh && rankCount(axes) == 1)
    return success();
  if (!mesh)
    return module.emitError("is the program of one rank, the recipe has ") << rankCount(axes);
  const bool isAlike =
      mesh.getRanks() > 1 && llvm::equal(llvm::zip_equal(mesh.getAxes(), mesh.getExtents()), axes,
                                         [](auto axis, const MeshAxis& other) {
                                           return std::get<0>(axis) == other.name &&
                                                  std::get<1>(axis) == other.ranks;
                                         });
  return isAlike ? success()
                 : module.emitError("is the program of the ranks of ")
                       << mesh << ", the recipe has another mesh of " << rankCount(axes);
}

/// Nothing says any more that a value is divided.
LogicalResult verifyNoPlacements(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (Attribute placement = function.getArgAttr(i, dist::placementTag))
      return function.emitError("argument ") << i << " is still placed by " << placement;
  WalkResult walked = function.walk([](Operation* op) -> WalkResult {
    Attribute placements = op->getDiscardableAttr(dist::placementsTag);
    if (!placements)
      return WalkResult::advance();
    return op->emitError("is still placed by ") << placements;
  });
  return failure(walked.wasInterrupted());
}

/// A rank takes its own microbatches.
LogicalResult verifyInputs(func::FuncOp step, int64_t microbatches) {
  TaggedFunction tagged(step);
  for (auto [i, type] : llvm::enumerate(step.getArgumentTypes())) {
    StringRef input = tagged.argumentTag(i, ir::tag::input);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!input.empty() && tensor && (tensor.getRank() == 0 || tensor.getDimSize(0) != microbatches))
      return step.emitError("takes input '")
             << input << "' as " << type << ", a rank runs " << microbatches << " microbatches";
  }
  return success();
}

/// Sums of gradients stand right behind the loop that their axes divide, all others behind all
/// loops.
LogicalResult verifyPlaceOfSum(Operation* op, const FunctionPlacements& placements) {
  if (!isa<dist::AllReduceOp, dist::ReduceScatterOp>(op))
    return success();
  size_t depth = 0;
  for (auto loop = op->getParentOfType<accum::LoopOp>(); loop; loop = loop.getOuter())
    ++depth;
  ArrayRef<MicrobatchLoop> loops = placements.loops();
  for (auto axis : op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>()) {
    const unsigned number = *placements.mesh().find(axis);
    size_t expected = 0;
    if (ir::getPhase(op) == ir::Phase::Backward)
      while (expected + 1 < loops.size() && !llvm::is_contained(loops[expected].axes, number))
        ++expected;
    if (depth != expected)
      return op->emitOpError("sums over ")
             << axis << " inside of " << depth
             << " loops, by mesh.sync and mesh.sync_every it is inside of " << expected;
  }
  return success();
}

/// What of `operand` a rank has where its op takes `taken`: a part of one value in each element is
/// made as such, and nothing in the op that makes it says of what it is a part.
ValuePlacement placementFor(OpOperand& operand, const ValuePlacement& taken,
                            const FunctionPlacements& placements) {
  ValuePlacement placement = placements[operand.get()];
  if (isOneValue(operand.get()))
    for (auto [on, wanted] : llvm::zip_equal(placement, taken))
      if (on.isReplicate() && wanted.isShard())
        on = wanted;
  return placement;
}

/// What a rank has of each value is what its readers take: sums over ranks are taken once, and
/// behind the loop, parts are gathered where the whole is read.
LogicalResult verifyPlacements(func::FuncOp function) {
  FailureOr<FunctionPlacements> placements =
      FunctionPlacements::of(function, FunctionPlacements::Source::Seeds);
  if (failed(placements))
    return failure();
  WalkResult walked = function.getBody().walk([&](Operation* op) -> WalkResult {
    if (failed(verifyPlaceOfSum(op, *placements)))
      return WalkResult::interrupt();
    for (OpOperand& operand : op->getOpOperands()) {
      const ValuePlacement taken = placements->taken(operand);
      if (ValuePlacement given = placementFor(operand, taken, *placements); given != taken)
        return op->emitError("takes operand ")
               << operand.getOperandNumber() << " as " << toAttribute(taken, placements->mesh())
               << ", a rank has " << toAttribute(given, placements->mesh());
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// *schedule* takes loops of one iteration away, and the last iteration out of others.
bool hasAllLoops(func::FuncOp function, const Recipe& recipe) {
  size_t loops = 0, peeled = 0;
  function.walk([&](accum::LoopOp loop) {
    ++loops;
    peeled += isPeeled(loop);
  });
  return loops == microbatchLoops(recipe).size() && peeled == 0;
}

/// From *schedule* on collectives are halves, whose place has rules of its own.
bool hasHalves(func::FuncOp function) {
  return function.walk([](dist::StartOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

LogicalResult verifyFunction(func::FuncOp function, const SymbolTable& symbols,
                             const Recipe& recipe) {
  if (failed(verifyStateTypes(function, symbols, recipe.mesh.axes)) ||
      failed(verifyNoPlacements(function)))
    return failure();
  const bool isStep = function.getName() == ir::function::step;
  if (isStep &&
      failed(verifyLoopChain(function, recipe.localMicrobatches(), /*mayBeInlined=*/true)))
    return failure();
  if (!dist::meshOf(function))
    return success();
  if (!hasHalves(function) && failed(verifyPadding(function)))
    return failure();
  if (isStep && failed(verifyInputs(function, recipe.localMicrobatches())))
    return failure();
  // An iteration that stands outside of its loop says no longer what it adds up.
  const bool mayBePlaced = !isStep || hasAllLoops(function, recipe);
  return mayBePlaced && !hasHalves(function) ? verifyPlacements(function) : success();
}

struct VerifyShard : impl::VerifyShardBase<VerifyShard> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<Recipe> recipe = getRecipe(module);
    if (failed(recipe) || failed(verifyMesh(module, recipe->mesh.axes)))
      return signalPassFailure();
    const SymbolTable symbols(module);
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(verifyFunction(function, symbols, *recipe)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace titan
