#include "compiler/Shard/FunctionPlacements.h"

#include "compiler/Shard/Seeds.h"
#include "compiler/Support/RecipeAttribute.h"

using namespace mlir;

namespace titan {

namespace {

/// The placement of a state's argument or result, from its symbol; replicated if it is no state's.
ir::PlacementAttr statePlacement(func::FuncOp function, Attribute tag) {
  auto symbol = dyn_cast_if_present<FlatSymbolRefAttr>(tag);
  auto module = function->getParentOfType<ModuleOp>();
  auto state = symbol ? module.lookupSymbol<ir::StateOp>(symbol.getAttr()) : ir::StateOp();
  return state ? state.getPlacement().value_or(ir::PlacementAttr()) : ir::PlacementAttr();
}

/// The cuts of a state, as a value's.
dist::PlacementAttr asValue(ir::PlacementAttr placement) {
  return placement ? dist::PlacementAttr::get(placement.getContext(), placement.getAxes(),
                                              placement.getDims())
                   : dist::PlacementAttr();
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
  FunctionPlacements placements(function, recipe->mesh, source);
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
    if (auto state = statePlacement(function_, function_.getArgAttr(number, ir::tag::state)))
      attribute = asValue(state);
    FailureOr<ValuePlacement> placement = toPlacement(attribute, mesh_);
    if (failed(placement))
      return function_.emitError("argument ") << number << " is placed by " << attribute
                                              << " on axes that " << mesh_ << " does not have";
    placements_[argument] = *placement;
  }
  return success();
}

AxisRule FunctionPlacements::ruleAt(unsigned axis, Operation* op) const {
  auto operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return (*this)[operand][axis]; });
  AxisRule rule = ruleOn(axis, op, operands);
  // A gradient is summed once for all that read it: to the part that its update takes.
  bool isPart = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!operands[i].isPartial() || !rule.operands[i].isReplicate())
      continue;
    operands[i] = gradients_[operand][axis];
    isPart |= operands[i].isShard();
  }
  return isPart ? ruleOn(axis, op, operands) : rule;
}

LogicalResult FunctionPlacements::visit(Operation* op) {
  if (auto loop = dyn_cast<accum::LoopOp>(op))
    return visitLoop(loop);
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

bool FunctionPlacements::isDivided(accum::LoopOp loop, unsigned axis) const {
  return llvm::any_of(loop.getBatches(),
                      [&](Value batch) { return (*this)[batch][axis] == AxisPlacement::shard(0); });
}

LogicalResult FunctionPlacements::visitLoop(accum::LoopOp loop) {
  for (BlockArgument argument : loop.getBlock().getArguments())
    placements_[argument] = ValuePlacement(mesh_.getAxes().size());
  for (unsigned axis = 0; axis < mesh_.getAxes().size(); ++axis)
    if (isDivided(loop, axis) && failed(visitLoop(loop, axis)))
      return failure();
  for (Operation& op : loop.getBlock().without_terminator())
    if (failed(visit(&op)))
      return failure();

  SmallVector<ValuePlacement> results(loop.getNumResults(), ValuePlacement(mesh_.getAxes().size()));
  for (unsigned axis = 0; axis < mesh_.getAxes().size(); ++axis) {
    if (!isDivided(loop, axis))
      continue;
    if (failed(checkLoopEnd(loop, axis)))
      return failure();
    for (auto [i, placement] : llvm::enumerate(results))
      placement[axis] =
          i < loop.getSums().size() ? AxisPlacement::partial() : AxisPlacement::shard(0);
  }
  return place(loop, results);
}

/// Places the arguments of the body of a loop whose iterations are divided along `axis`.
LogicalResult FunctionPlacements::visitLoop(accum::LoopOp loop, unsigned axis) {
  if (loop.getOuter() || !loop.getBlock().getOps<accum::LoopOp>().empty())
    return loop.emitError("one of several nested loops cannot be divided among ranks");
  for (auto [i, batch] : llvm::enumerate(loop.getBatches()))
    if ((*this)[batch][axis] != AxisPlacement::shard(0))
      return loop.emitError("the iterations are divided along ")
             << mesh_.getAxes()[axis] << ", batch " << i << " is not";
  for (auto [i, init] : llvm::enumerate(loop.getInits()))
    if (!isZero(init))
      return loop.emitError("accumulator ")
             << i << " does not start at zero: each rank would add what it starts at";
  placements_[loop.getIndex()][axis] = AxisPlacement::iteration();
  for (Value slice : loop.getSlices())
    placements_[slice][axis] = AxisPlacement::iteration();
  for (Value accumulator : loop.getAccumulators())
    placements_[accumulator][axis] = AxisPlacement::partial();
  return success();
}

LogicalResult FunctionPlacements::checkLoopEnd(accum::LoopOp loop, unsigned axis) {
  for (auto [i, yielded] : llvm::enumerate(loop.getYieldedSums()))
    if (!(*this)[yielded][axis].isPartial())
      return loop.emitError("result ")
             << i << " is no sum of the microbatches' terms: it cannot be divided among ranks";
  // What was summed so far is known to no rank.
  for (Operation& op : loop.getBlock().without_terminator())
    for (OpOperand& operand : op.getOpOperands())
      if (operand.get().getParentBlock() == &loop.getBlock() &&
          (*this)[operand.get()][axis].isPartial() && !taken(operand)[axis].isPartial())
        return op.emitOpError("reads what the loop has summed so far, of which each rank has a "
                              "part");
  return success();
}

ValuePlacement FunctionPlacements::takenByLoop(accum::LoopOp loop, AxisPlacement divided) const {
  ValuePlacement placement(mesh_.getAxes().size());
  for (unsigned axis = 0; axis < placement.size(); ++axis)
    if (isDivided(loop, axis))
      placement[axis] = divided;
  return placement;
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
  if (auto loop = dyn_cast<accum::LoopOp>(op))
    return takenByLoop(loop, operand.getOperandNumber() < loop.getBatches().size()
                                 ? AxisPlacement::shard(0)
                                 : AxisPlacement());
  if (isa<accum::YieldOp>(op)) {
    auto loop = cast<accum::LoopOp>(op->getParentOp());
    return takenByLoop(loop, operand.getOperandNumber() < loop.getSums().size()
                                 ? AxisPlacement::partial()
                                 : AxisPlacement::iteration());
  }
  if (auto terminator = dyn_cast<func::ReturnOp>(op)) {
    auto function = cast<func::FuncOp>(op->getParentOp());
    Attribute tag = function.getResultAttr(operand.getOperandNumber(), ir::tag::state);
    // Its argument was placed alike.
    placement = toPlacement(asValue(statePlacement(function, tag)), mesh_).value_or(placement);
    // What a rank makes of its own samples is its own result.
    for (auto [on, given] : llvm::zip_equal(placement, (*this)[operand.get()]))
      if (given.isIteration())
        on = given;
    return placement;
  }
  for (unsigned axis = 0; axis < placement.size(); ++axis)
    placement[axis] = ruleAt(axis, op).operands[operand.getOperandNumber()];
  return placement;
}

} // namespace titan
