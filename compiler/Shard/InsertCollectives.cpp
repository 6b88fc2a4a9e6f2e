#include "compiler/Shard/InsertCollectives.h"

#include "compiler/Support/TaggedFunction.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace titan {

namespace {

/// A value that is a sum over the ranks of `axes` for some of its uses.
struct Reduction {
  Value value;
  ArrayAttr axes;
  SmallVector<OpOperand*> uses;
};

/// The axes on which `taken` is the sum of what `placement` has terms of; nothing if they differ in
/// any other way.
std::optional<ArrayAttr> summedAxes(const ValuePlacement& placement, const ValuePlacement& taken,
                                    dist::MeshAttr mesh) {
  SmallVector<Attribute> axes;
  for (auto [axis, from, to] : llvm::zip_equal(mesh.getAxes(), placement, taken)) {
    if (from == to)
      continue;
    if (!from.isPartial() || !to.isReplicate())
      return std::nullopt;
    axes.push_back(axis);
  }
  return ArrayAttr::get(mesh.getContext(), axes);
}

/// The sums that the uses of the function's values need, in the order of the values.
FailureOr<SmallVector<Reduction>> collect(func::FuncOp function,
                                          const FunctionPlacements& placements) {
  SmallVector<Reduction> reductions;
  llvm::DenseMap<std::pair<Value, Attribute>, size_t> known;
  WalkResult walked = function.getBody().walk([&](Operation* op) -> WalkResult {
    for (OpOperand& operand : op->getOpOperands()) {
      const ValuePlacement &placement = placements[operand.get()],
                           taken = placements.taken(operand);
      if (placement == taken)
        continue;
      std::optional<ArrayAttr> axes = summedAxes(placement, taken, placements.mesh());
      if (!axes)
        return op->emitError("takes operand ")
               << operand.getOperandNumber() << " as " << toAttribute(taken, placements.mesh())
               << ", it is " << toAttribute(placement, placements.mesh())
               << ": there is no collective for this";
      if (operand.get().getParentBlock() != &function.getBody().front())
        return op->emitError("takes the sum over ranks of a value of the loop's body: only what "
                             "the loop gives is summed");
      auto [entry, isNew] = known.try_emplace({operand.get(), *axes}, reductions.size());
      if (isNew)
        reductions.push_back({operand.get(), *axes, {}});
      reductions[entry->second].uses.push_back(&operand);
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return reductions;
}

/// What the sum of a loop adds up, or the value's own op; null for an argument.
Operation* sourceOf(Value value) {
  Operation* op = value.getDefiningOp();
  auto loop = dyn_cast_if_present<accum::LoopOp>(op);
  if (!loop)
    return op;
  return loop.getYieldedSums()[cast<OpResult>(value).getResultNumber()].getDefiningOp();
}

/// A sum of backward's terms is backward's own; what else is summed, the update needs.
ir::Phase phaseOf(const Reduction& reduction) {
  Operation* source = sourceOf(reduction.value);
  return source && ir::getPhase(source) == ir::Phase::Backward ? ir::Phase::Backward
                                                               : ir::Phase::Update;
}

/// The name of a value: the metric that it is, the parameter that it updates, or the modules that
/// made it.
std::string nameOf(const Reduction& reduction) {
  llvm::SmallSetVector<StringRef, 2> names;
  for (OpOperand* use : reduction.uses) {
    Operation* user = use->getOwner();
    if (auto terminator = dyn_cast<func::ReturnOp>(user)) {
      TaggedFunction function(cast<func::FuncOp>(user->getParentOp()));
      if (StringRef metric = function.resultTag(use->getOperandNumber(), ir::tag::metric);
          !metric.empty())
        return metric.str();
    }
    if (ArrayAttr path = ir::getPath(user))
      for (auto name : path.getAsValueRange<StringAttr>())
        names.insert(name);
  }
  if (!names.empty())
    return llvm::join(names, ", ");
  Operation* source = sourceOf(reduction.value);
  return source ? ir::pathString(source) : std::string();
}

/// Reductions that one collective does, and where it may stand.
struct Bucket {
  ArrayAttr axes;
  ir::Phase phase;
  SmallVector<Reduction> reductions;

  Operation* last = nullptr;  ///< the last op that makes a value; null: all are arguments
  Operation* first = nullptr; ///< the first op that takes a sum

  bool takes(const Reduction& reduction) const;
  void add(Reduction reduction);
};

Operation* later(Operation* a, Operation* b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

/// The op that takes a sum first, in the block of the function.
Operation* firstUser(const Reduction& reduction) {
  Operation* first = nullptr;
  for (OpOperand* use : reduction.uses) {
    Operation* user = use->getOwner();
    while (!isa<func::FuncOp>(user->getParentOp()))
      user = user->getParentOp();
    if (!first || user->isBeforeInBlock(first))
      first = user;
  }
  return first;
}

bool Bucket::takes(const Reduction& reduction) const {
  Operation *after = later(last, reduction.value.getDefiningOp()), *user = firstUser(reduction);
  Operation* before = user->isBeforeInBlock(first) ? user : first;
  return axes == reduction.axes && phase == phaseOf(reduction) &&
         (!after || after->isBeforeInBlock(before));
}

void Bucket::add(Reduction reduction) {
  last = later(last, reduction.value.getDefiningOp());
  Operation* user = firstUser(reduction);
  if (!first || user->isBeforeInBlock(first))
    first = user;
  reductions.push_back(std::move(reduction));
}

/// As the function makes them; arguments, which it does not make, last.
bool comesBefore(Value a, Value b) {
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (x && x == y)
    return cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber();
  if (x && y)
    return x->isBeforeInBlock(y);
  if (x || y)
    return bool(x);
  return cast<BlockArgument>(a).getArgNumber() < cast<BlockArgument>(b).getArgNumber();
}

SmallVector<Bucket> bucketsOf(SmallVector<Reduction> reductions) {
  llvm::sort(reductions,
             [](const Reduction& a, const Reduction& b) { return comesBefore(a.value, b.value); });
  SmallVector<Bucket> buckets;
  for (Reduction& reduction : reductions) {
    auto* bucket = llvm::find_if(buckets, [&](Bucket& each) { return each.takes(reduction); });
    if (bucket == buckets.end())
      bucket = &buckets.emplace_back(Bucket{reduction.axes, phaseOf(reduction), {}});
    bucket->add(std::move(reduction));
  }
  return buckets;
}

int64_t bytesOf(const Bucket& bucket) {
  int64_t bytes = 0;
  for (const Reduction& reduction : bucket.reductions) {
    auto type = cast<RankedTensorType>(reduction.value.getType());
    bytes += type.getNumElements() * type.getElementTypeBitWidth() / 8;
  }
  return bytes;
}

void remarkOn(dist::AllReduceOp op, const Bucket& bucket) {
  remark::passed(op.getLoc(), remark::RemarkOpts::name("partition").category("shard"))
      << remark::add("all_reduce of {0} over {1}, {2} bytes: {3}", ir::pathString(op),
                     llvm::join(bucket.axes.getAsValueRange<StringAttr>(), ", "), bytesOf(bucket),
                     bucket.phase == ir::Phase::Backward
                         ? "each rank has the gradients of its own microbatches, and all update "
                           "all parameters"
                         : "each rank has a term of what the update and the metrics need");
}

/// Builds the collective right behind the last of its values, or at the start of the function.
void build(const Bucket& bucket, func::FuncOp function) {
  OpBuilder builder(function.getContext());
  if (bucket.last)
    builder.setInsertionPointAfter(bucket.last);
  else
    builder.setInsertionPointToStart(&function.getBody().front());
  SmallVector<Value> values;
  SmallVector<StringRef> names;
  std::vector<std::string> texts;
  for (const Reduction& reduction : bucket.reductions) {
    values.push_back(reduction.value);
    texts.push_back(nameOf(reduction));
  }
  llvm::append_range(names, texts);
  const Location loc = bucket.last ? bucket.last->getLoc() : function.getLoc();
  auto op = dist::AllReduceOp::create(
      builder, loc, ValueRange(values).getTypes(), values, dist::Order::Rank, bucket.axes,
      builder.getStrArrayAttr(names), ir::PhaseAttr::get(builder.getContext(), bucket.phase));
  remarkOn(op, bucket);
  for (auto [reduction, sum] : llvm::zip_equal(bucket.reductions, op.getResults()))
    for (OpOperand* use : reduction.uses)
      use->set(sum);
}

} // namespace

LogicalResult insertCollectives(func::FuncOp function, const FunctionPlacements& placements) {
  FailureOr<SmallVector<Reduction>> reductions = collect(function, placements);
  if (failed(reductions))
    return failure();
  const SmallVector<Bucket> buckets = bucketsOf(std::move(*reductions));
  // Each goes right behind its values. What is built first stands last: those of the update behind
  // those of backward.
  for (ir::Phase phase : {ir::Phase::Update, ir::Phase::Backward})
    for (const Bucket& bucket : llvm::reverse(buckets))
      if (bucket.phase == phase)
        build(bucket, function);
  return success();
}

} // namespace titan
