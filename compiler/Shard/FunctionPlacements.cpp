#include "compiler/Shard/FunctionPlacements.h"

#include "compiler/Shard/LoopSums.h"
#include "compiler/Shard/Seeds.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/TaggedFunction.h"

using namespace mlir;

namespace titan {

namespace {

/// Null for no state, and for one that all ranks hold whole.
ir::PlacementAttr cutsOf(ir::StateOp state) {
  return state ? state.getPlacement().value_or(ir::PlacementAttr()) : ir::PlacementAttr();
}

/// The cuts of a state, as a value's.
dist::PlacementAttr asValue(ir::PlacementAttr placement) {
  return placement ? dist::PlacementAttr::get(placement.getContext(), placement.getAxes(),
                                              placement.getDims())
                   : dist::PlacementAttr();
}

/// Ranks stack rows in the order of their own iterations, which need not be neighbours: what reads
/// them takes the rows of all ranks.
bool isStack(Value value) {
  auto loop = value.getDefiningOp<accum::LoopOp>();
  return loop && llvm::is_contained(loop.getStacks(), value);
}

bool isZero(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  Attribute element = splat ? splat.getSplatValue<Attribute>() : Attribute();
  if (auto number = dyn_cast_if_present<FloatAttr>(element))
    return number.getValue().isZero();
  auto integer = dyn_cast_if_present<IntegerAttr>(element);
  return integer && integer.getValue().isZero();
}

} // namespace

FailureOr<FunctionPlacements> FunctionPlacements::of(func::FuncOp function, Source source) {
  FailureOr<Recipe> recipe = getRecipe(function->getParentOfType<ModuleOp>());
  if (failed(recipe))
    return failure();
  FunctionPlacements placements(function, *recipe, source);
  if (failed(placements.placeArguments()))
    return failure();
  for (Operation& op : function.getBody().front())
    if (failed(placements.visit(&op)))
      return failure();
  return placements;
}

LogicalResult FunctionPlacements::placeArguments() {
  for (BlockArgument argument : function_.getArguments()) {
    const unsigned number = argument.getArgNumber();
    auto attribute =
        source_ == Source::Seeds
            ? seedOf(TaggedFunction(function_), number, mesh_)
            : function_.getArgAttrOfType<dist::PlacementAttr>(number, dist::placementTag);
    if (auto cuts = cutsOf(TaggedFunction(function_).argumentState(number)))
      attribute = asValue(cuts);
    FailureOr<ValuePlacement> placement = toPlacement(attribute, mesh_);
    if (failed(placement))
      return function_.emitError("argument ") << number << " is placed by " << attribute
                                              << " on axes that " << mesh_ << " does not have";
    placements_[argument] = *placement;
  }
  return success();
}

AxisRule FunctionPlacements::ruleAt(unsigned axis, Operation* op) const {
  const bool isCollective = dist::isWholeCollective(op);
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
    const AxisPlacement on = (*this)[operand][axis];
    return on.isShard() && isStack(operand) && !isCollective ? AxisPlacement() : on;
  });
  auto loop = dyn_cast<accum::LoopOp>(op->getParentOp());
  const bool divides = loop && isDivided(loop, axis);
  AxisRule rule = ruleOn(axis, op, operands, divides, isTree_);
  // A gradient is summed once for all that read it: to the part that its update takes.
  bool isPart = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!operands[i].isPartial() || !rule.operands[i].isReplicate())
      continue;
    operands[i] = gradients_[operand][axis];
    isPart |= operands[i].isShard();
  }
  return isPart ? ruleOn(axis, op, operands, divides, isTree_) : rule;
}

LogicalResult FunctionPlacements::visit(Operation* op) {
  if (auto loop = dyn_cast<accum::LoopOp>(op))
    return visitLoop(loop);
  if (isBatchReshape(op))
    return visitBatchReshape(op);
  if (op->getNumRegions() > 0)
    return op->emitOpError("has a region: what it reads cannot be divided among ranks");
  SmallVector<ValuePlacement> results(op->getNumResults(), ValuePlacement(mesh_.getAxes().size()));
  for (unsigned axis = 0; axis < mesh_.getAxes().size(); ++axis)
    for (auto [placement, on] : llvm::zip_equal(results, ruleAt(axis, op).results))
      placement[axis] = on;
  return place(op, results);
}

LogicalResult FunctionPlacements::place(Operation* op, ArrayRef<ValuePlacement> results) {
  auto attribute = op->getAttrOfType<ArrayAttr>(dist::placementsTag);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    auto given = attribute ? cast<dist::PlacementAttr>(attribute[i]) : dist::PlacementAttr();
    FailureOr<ValuePlacement> placement = toPlacement(given, mesh_);
    if (source_ == Source::Attributes && (failed(placement) || *placement != results[i]))
      return op->emitError("result ")
             << i << " is placed by "
             << (given ? given : toAttribute(ValuePlacement(results[i].size()), mesh_))
             << ", its operands give " << toAttribute(results[i], mesh_);
    placements_[result] = results[i];
  }
  return success();
}

bool FunctionPlacements::isBatchReshape(Operation* op) const {
  auto reshape = dyn_cast<ir::ReshapeOp>(op);
  auto argument = reshape ? dyn_cast<BlockArgument>(reshape.getOperand()) : BlockArgument();
  func::FuncOp function = function_;
  return argument && argument.getOwner()->getParentOp() == function &&
         function.getArgAttr(argument.getArgNumber(), ir::tag::input) &&
         llvm::any_of((*this)[argument], [](AxisPlacement on) { return on.isShard(); });
}

/// The microbatches that an axis divides are then those of one of the loops.
LogicalResult FunctionPlacements::visitBatchReshape(Operation* op) {
  ValuePlacement placement = (*this)[op->getOperand(0)];
  for (auto [axis, on] : llvm::enumerate(placement))
    if (on.isShard()) {
      const auto* loop = llvm::find_if(ArrayRef(loops_), [axis = axis](const MicrobatchLoop& each) {
        return llvm::is_contained(each.axes, axis);
      });
      on = AxisPlacement::shard(loop == ArrayRef(loops_).end() ? 0 : loop - loops_.data());
    }
  return place(op, {placement});
}

bool FunctionPlacements::isDivided(accum::LoopOp loop, unsigned axis) const {
  return llvm::any_of(loop.getBatches(),
                      [&](Value batch) { return (*this)[batch][axis] == AxisPlacement::shard(0); });
}

bool FunctionPlacements::isDividedInside(accum::LoopOp loop, unsigned axis) const {
  return !isDivided(loop, axis) && llvm::any_of(loop.getBatches(), [&](Value batch) {
    return (*this)[batch][axis].isShard();
  });
}

bool FunctionPlacements::isDividedAround(accum::LoopOp loop, unsigned axis) const {
  for (accum::LoopOp outer = loop.getOuter(); outer; outer = outer.getOuter())
    if (isDivided(outer, axis))
      return true;
  return false;
}

/// A sum of terms of all ranks is each rank's part of it, until they sum. What is of phase backward
/// is summed right behind the loop that they divide, to what the update takes; all else once,
/// behind all loops. Sums of trees take the first way, by phaseOfSum().
AxisPlacement FunctionPlacements::accumulatorOn(unsigned axis, accum::LoopOp loop,
                                                unsigned sum) const {
  if (isDividedAround(loop, axis))
    return AxisPlacement::iteration();
  const bool isSummedInside = phaseOfSum(loop.getResult(sum), isTree_) == ir::Phase::Backward &&
                              isDividedInside(loop, axis);
  if (isSummedInside)
    return gradients_[loop.getResult(sum)][axis];
  return isDivided(loop, axis) || isDividedInside(loop, axis) ? AxisPlacement::partial()
                                                              : AxisPlacement();
}

/// The rows of a loop inside of `loop` lie behind each other in a row of its own stack.
AxisPlacement FunctionPlacements::stackOn(unsigned axis, accum::LoopOp loop, Value row) const {
  if (isDivided(loop, axis))
    return AxisPlacement::shard(0);
  const AxisPlacement on = (*this)[row][axis];
  return on.isShard() ? AxisPlacement::shard(on.dim + 1) : on;
}

LogicalResult FunctionPlacements::visitLoop(accum::LoopOp loop) {
  for (BlockArgument argument : loop.getBlock().getArguments())
    placements_[argument] = ValuePlacement(mesh_.getAxes().size());
  for (unsigned axis = 0; axis < mesh_.getAxes().size(); ++axis)
    if (failed(enterLoop(loop, axis)))
      return failure();
  for (Operation& op : loop.getBlock().without_terminator())
    if (failed(visit(&op)))
      return failure();

  SmallVector<ValuePlacement> results(loop.getNumResults(), ValuePlacement(mesh_.getAxes().size()));
  for (unsigned axis = 0; axis < mesh_.getAxes().size(); ++axis) {
    if (failed(checkLoopEnd(loop, axis)))
      return failure();
    for (unsigned i = 0; i < loop.getSums().size(); ++i)
      results[i][axis] = accumulatorOn(axis, loop, i);
    for (auto [placement, row] : llvm::zip_equal(
             MutableArrayRef(results).take_back(loop.getStacked()), loop.getYieldedRows()))
      placement[axis] = stackOn(axis, loop, row);
  }
  return place(loop, results);
}

LogicalResult FunctionPlacements::enterLoop(accum::LoopOp loop, unsigned axis) {
  const bool divides = isDivided(loop, axis);
  for (auto [i, batch, slice] : llvm::enumerate(loop.getBatches(), loop.getSlices())) {
    const AxisPlacement on = (*this)[batch][axis];
    if (divides && on != AxisPlacement::shard(0))
      return loop.emitError("the iterations are divided along ")
             << mesh_.getAxes()[axis] << ", batch " << i << " is not";
    if (on.isShard())
      placements_[slice][axis] =
          on.dim == 0 ? AxisPlacement::iteration() : AxisPlacement::shard(on.dim - 1);
    else if (on.isIteration())
      placements_[slice][axis] = on;
  }
  if (divides)
    placements_[loop.getIndex()][axis] = AxisPlacement::iteration();
  for (auto [i, accumulator] : llvm::enumerate(loop.getAccumulators())) {
    const AxisPlacement on = accumulatorOn(axis, loop, i);
    if (on.isPartial() && !isZero(loop.getInits()[i]))
      return loop.emitError("accumulator ")
             << i << " does not start at zero: each rank would add what it starts at";
    placements_[accumulator][axis] = on;
  }
  return success();
}

LogicalResult FunctionPlacements::checkLoopEnd(accum::LoopOp loop, unsigned axis) const {
  const bool yieldsTerms = loop.getOrder() == accum::Order::Tree && isDivided(loop, axis);
  for (auto [i, yielded] : llvm::enumerate(loop.getYieldedSums()))
    if (accumulatorOn(axis, loop, i).isPartial() && !yieldsTerms &&
        !(*this)[yielded][axis].isPartial())
      return loop.emitError("result ")
             << i << " is no sum of the microbatches' terms: it cannot be divided among ranks";
  if (!isDivided(loop, axis))
    return success();
  // What was summed so far is known to no rank.
  WalkResult walked = loop.getBlock().walk([&](Operation* op) -> WalkResult {
    if (isa<accum::YieldOp>(op))
      return WalkResult::advance();
    for (OpOperand& operand : op->getOpOperands())
      if (operand.get().getParentBlock() == &loop.getBlock() &&
          (*this)[operand.get()][axis].isPartial() && !taken(operand)[axis].isPartial())
        return op->emitOpError("reads what the loop has summed so far, of which each rank has a "
                               "part");
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

AxisPlacement FunctionPlacements::takenByLoop(unsigned axis, accum::LoopOp loop,
                                              OpOperand& operand) const {
  const AxisPlacement on = (*this)[operand.get()][axis];
  const unsigned number = operand.getOperandNumber(), batches = loop.getBatches().size();
  if (number < batches) {
    if (isDivided(loop, axis))
      return AxisPlacement::shard(0);
    return on.isPartial() ? AxisPlacement() : on;
  }
  const AxisPlacement accumulator = accumulatorOn(axis, loop, number - batches);
  if (accumulator.isIteration() && on.isIteration())
    return on;
  // A part of zeros is zeros.
  if (accumulator.isShard() && source_ == Source::Seeds && isZero(operand.get()))
    return on;
  return accumulator.isShard() ? accumulator : AxisPlacement();
}

AxisPlacement FunctionPlacements::takenByYield(unsigned axis, accum::LoopOp loop,
                                               OpOperand& operand) const {
  const AxisPlacement on = (*this)[operand.get()][axis];
  const unsigned number = operand.getOperandNumber();
  if (number >= loop.getSums().size())
    return isDivided(loop, axis) && !on.isReplicate() ? AxisPlacement::iteration() : on;
  // A term of the tree, of this iteration or the same in each.
  if (loop.getOrder() == accum::Order::Tree && isDivided(loop, axis))
    return on.isIteration() ? on : AxisPlacement();
  const AxisPlacement accumulator = accumulatorOn(axis, loop, number);
  return accumulator.isIteration() && on.isReplicate() ? on : accumulator;
}

RankedTensorType FunctionPlacements::wholeType(Value value) const {
  auto defined = whole_.find(value);
  return defined == whole_.end() ? cast<RankedTensorType>(value.getType()) : defined->second;
}

void FunctionPlacements::define(Value value, Value from, ValuePlacement placement) {
  const auto element = cast<ShapedType>(value.getType()).getElementType();
  whole_[value] = wholeType(from).clone(element);
  placements_[value] = std::move(placement);
}

void FunctionPlacements::defineWhole(Value value) {
  whole_[value] = cast<RankedTensorType>(value.getType());
  placements_[value] = ValuePlacement(mesh_.getAxes().size());
}

void FunctionPlacements::localizeTypes() {
  auto localize = [&](Value value) {
    if (auto whole = dyn_cast<RankedTensorType>(value.getType()); whole && !whole_.contains(value))
      value.setType(localType(whole, (*this)[value], mesh_));
  };
  function_.walk([&](Operation* op) {
    llvm::for_each(op->getResults(), localize);
    for (Region& region : op->getRegions())
      llvm::for_each(region.getArguments(), localize);
  });
  Builder builder(function_.getContext());
  Operation* terminator = function_.getBody().front().getTerminator();
  function_.setFunctionType(builder.getFunctionType(function_.getBody().front().getArgumentTypes(),
                                                    terminator->getOperandTypes()));
}

ValuePlacement FunctionPlacements::taken(OpOperand& operand) const {
  Operation* op = operand.getOwner();
  ValuePlacement placement(mesh_.getAxes().size());
  if (isBatchReshape(op))
    return (*this)[operand.get()];
  if (auto terminator = dyn_cast<func::ReturnOp>(op)) {
    auto function = cast<func::FuncOp>(op->getParentOp());
    ir::StateOp state = TaggedFunction(function).resultState(operand.getOperandNumber());
    // Its argument was placed alike.
    placement = toPlacement(asValue(cutsOf(state)), mesh_).value_or(placement);
    // What a rank makes of its own samples is its own result.
    for (auto [on, given] : llvm::zip_equal(placement, (*this)[operand.get()]))
      if (given.isIteration())
        on = given;
    return placement;
  }
  for (unsigned axis = 0; axis < placement.size(); ++axis) {
    if (auto loop = dyn_cast<accum::LoopOp>(op))
      placement[axis] = takenByLoop(axis, loop, operand);
    else if (isa<accum::YieldOp>(op))
      placement[axis] = takenByYield(axis, cast<accum::LoopOp>(op->getParentOp()), operand);
    else
      placement[axis] = ruleAt(axis, op).operands[operand.getOperandNumber()];
  }
  return placement;
}

} // namespace titan
