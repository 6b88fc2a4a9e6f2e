#include "compiler/Shard/Conversions.h"

#include "compiler/Shard/LoopSums.h"
#include "compiler/Shard/Padding.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/TaggedFunction.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan {

namespace {

using Kind = ConversionStep::Kind;

/// The step on the first axis where `isNeeded`, and on those that go the same way there.
template <typename Predicate>
std::optional<ConversionStep> stepWhere(Kind kind, Predicate isNeeded, const ValuePlacement& from,
                                        const ValuePlacement& to, dist::MeshAttr mesh) {
  ConversionStep step{kind, {}, -1, from};
  SmallVector<Attribute> axes;
  for (auto [axis, before, after, result] :
       llvm::zip_equal(mesh.getAxes(), from, to, step.result)) {
    const int64_t dim = after.isShard() ? after.dim : before.dim;
    if (!isNeeded(before, after) || (!axes.empty() && dim != step.dim))
      continue;
    axes.push_back(axis);
    step.dim = dim;
    result = after;
  }
  if (axes.empty())
    return std::nullopt;
  step.axes = ArrayAttr::get(mesh.getContext(), axes);
  return step;
}

/// Is `value` the sum of a loop, also over the ranks of other axes and padded for them, an
/// argument, or a value of the function itself?
bool mayBeSummed(Value value) {
  for (Operation* op = value.getDefiningOp();
       op && (isa<ir::ConvertOp, ir::PadOp>(op) || dist::isWholeCollective(op));
       op = value.getDefiningOp())
    value =
        op->getOperand(dist::isWholeCollective(op) ? cast<OpResult>(value).getResultNumber() : 0);
  return value.getDefiningOp<accum::LoopOp>() ||
         isa<func::FuncOp>(value.getParentBlock()->getParentOp());
}

/// What an op of the function returns `operand` as, metric or state; empty if it does not.
std::string returnedAs(OpOperand& operand) {
  auto terminator = dyn_cast<func::ReturnOp>(operand.getOwner());
  if (!terminator)
    return {};
  TaggedFunction function(cast<func::FuncOp>(terminator->getParentOp()));
  const unsigned result = operand.getOperandNumber();
  if (StringRef metric = function.resultTag(result, ir::tag::metric); !metric.empty())
    return metric.str();
  ir::StateOp state = function.resultState(result);
  return state ? state.getName().str() : std::string();
}

} // namespace

std::optional<ConversionStep> firstStep(const ValuePlacement& from, const ValuePlacement& to,
                                        dist::MeshAttr mesh) {
  auto step = [&](Kind kind, auto isNeeded) { return stepWhere(kind, isNeeded, from, to, mesh); };
  if (auto scatter = step(Kind::ReduceScatter, [](AxisPlacement a, AxisPlacement b) {
        return a.isPartial() && b.isShard();
      }))
    return scatter;
  if (auto reduce = step(Kind::AllReduce, [](AxisPlacement a, AxisPlacement b) {
        return a.isPartial() && b.isReplicate();
      }))
    return reduce;
  if (auto take = step(Kind::TakeShard, [](AxisPlacement a, AxisPlacement b) {
        return a.isReplicate() && b.isShard();
      }))
    return take;
  return step(Kind::AllGather,
              [](AxisPlacement a, AxisPlacement b) { return a.isShard() && b.isReplicate(); });
}

FailureOr<SmallVector<Conversion>> conversionsOf(func::FuncOp function,
                                                 const FunctionPlacements& placements) {
  const dist::MeshAttr mesh = placements.mesh();
  llvm::MapVector<std::pair<Value, Attribute>, Conversion> conversions;
  WalkResult walked = function.getBody().walk([&](Operation* op) -> WalkResult {
    for (OpOperand& operand : op->getOpOperands()) {
      const Value value = operand.get();
      const ValuePlacement &placement = placements[value], taken = placements.taken(operand);
      if (placement == taken)
        continue;
      std::optional<ConversionStep> step = firstStep(placement, taken, mesh);
      if (!step)
        return op->emitError("takes operand ")
               << operand.getOperandNumber() << " as " << toAttribute(taken, mesh) << ", it is "
               << toAttribute(placement, mesh) << ": there is no collective for this";
      Conversion conversion{value, taken, *step, {}};
      if (conversion.sums() && !mayBeSummed(value))
        return op->emitError("takes the sum over ranks of a value of the loop's body: only what "
                             "a loop gives is summed");
      auto [entry, isNew] =
          conversions.insert({{value, toAttribute(taken, mesh)}, std::move(conversion)});
      entry->second.uses.push_back(&operand);
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  SmallVector<Conversion> list;
  for (auto& [key, conversion] : conversions)
    list.push_back(std::move(conversion));
  return list;
}

std::string returnedName(Value value) {
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand& use : values[i].getUses()) {
      if (std::string name = returnedAs(use); !name.empty())
        return name;
      values.insert_range(use.getOwner()->getResults());
    }
  return {};
}

ir::StateOp stateOf(Value value, const FunctionPlacements& placements) {
  auto isPart = [&](Value operand) {
    return llvm::any_of(placements[operand], [](AxisPlacement on) { return on.isShard(); });
  };
  while (Operation* op = value.getDefiningOp()) {
    const auto part = llvm::find_if(op->getOperands(), isPart);
    if (part == op->operand_end() || isa<ir::UpdateOpInterface, accum::LoopOp>(op) ||
        dist::isWholeCollective(op))
      return {};
    value = *part;
  }
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function ? TaggedFunction(function).argumentState(argument.getArgNumber()) : ir::StateOp();
}

std::string nameOf(const Conversion& conversion, const FunctionPlacements& placements) {
  llvm::SmallSetVector<StringRef, 2> names;
  SmallVector<OpOperand*> readers;
  for (OpOperand* use : conversion.uses)
    llvm::append_range(readers, readersBehindLoops(*use));
  // A transposed tensor is called like the tensor.
  for (size_t i = 0; i < readers.size(); ++i)
    if (isa<ir::TransposeOp>(readers[i]->getOwner()))
      for (OpOperand& use : readers[i]->getOwner()->getUses())
        readers.push_back(&use);
  llvm::erase_if(readers, [](OpOperand* use) { return isa<ir::TransposeOp>(use->getOwner()); });
  for (OpOperand* use : readers) {
    if (std::string name = returnedAs(*use); !name.empty())
      return name;
    ArrayAttr path = ir::getPath(use->getOwner());
    if (!path)
      continue;
    // The next sum, over other axes, has a name for each operand.
    if (dist::isWholeCollective(use->getOwner()))
      names.insert(cast<StringAttr>(path[use->getOperandNumber()]).getValue());
    else
      names.insert_range(path.getAsValueRange<StringAttr>());
  }
  if (ir::StateOp state = stateOf(conversion.value, placements))
    return state.getName().str();
  if (!names.empty())
    return llvm::join(names, ", ");
  Operation* source = sourceOf(conversion.value);
  std::string path = source ? ir::pathString(source) : std::string();
  return path.empty() ? returnedName(conversion.value) : path;
}

RankedTensorType typeBefore(const Conversion& conversion, const FunctionPlacements& placements) {
  return localType(placements.wholeType(conversion.value), placements[conversion.value],
                   placements.mesh());
}

RankedTensorType typeAfter(const Conversion& conversion, const FunctionPlacements& placements) {
  return localType(placements.wholeType(conversion.value), conversion.step.result,
                   placements.mesh());
}

RankedTensorType joinedTypeOf(const Conversion& conversion, const FunctionPlacements& placements) {
  const bool joins = conversion.step.kind == Kind::AllGather;
  return joinedType(joins ? typeBefore(conversion, placements) : typeAfter(conversion, placements),
                    conversion.step.dim, placements.mesh().groupSize(conversion.step.axes));
}

Value cutJoined(OpBuilder& builder, const Conversion& conversion, Value joined,
                FunctionPlacements& placements) {
  Operation* gather = joined.getDefiningOp();
  const unsigned number = cast<OpResult>(joined).getResultNumber();
  const ir::TensorBuilder t(builder, gather->getLoc(),
                            builder.getArrayAttr({ir::getPath(gather)[number]}),
                            ir::PhaseAttr::get(builder.getContext(), ir::getPhase(gather)));
  const Value whole =
      cutTo(t, joined, cast<RankedTensorType>(joined.getType()), typeAfter(conversion, placements));
  if (whole != joined)
    placements.define(whole, conversion.value, conversion.step.result);
  return whole;
}

int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

} // namespace titan
