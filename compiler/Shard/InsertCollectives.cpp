#include "compiler/Shard/InsertCollectives.h"

#include "compiler/Shard/LoopSums.h"
#include "compiler/Shard/Padding.h"
#include "compiler/Shard/PlaceGathers.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/TaggedFunction.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace titan {

namespace {

using Kind = ConversionStep::Kind;

/// What is exchanged for all values together and is no sum, the update needs.
ir::Phase phaseOf(const Conversion& conversion, bool isTree) {
  return conversion.sums() ? phaseOfSum(conversion.value, isTree) : ir::Phase::Update;
}

Operation* later(Operation* a, Operation* b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

/// Does `op` need a value that one of `users` makes, all in one block?
bool dependsOn(Operation* op, const llvm::SmallPtrSetImpl<Operation*>& users) {
  if (llvm::none_of(users, [&](Operation* user) { return user->isBeforeInBlock(op); }))
    return false;
  Block* block = op->getBlock();
  llvm::SmallPtrSet<Operation*, 32> seen;
  SmallVector<Operation*> open = {op};
  while (!open.empty()) {
    Operation* each = open.pop_back_val();
    if (!seen.insert(each).second)
      continue;
    if (users.contains(each))
      return true;
    each->walk([&](Operation* inner) {
      for (Value operand : inner->getOperands())
        if (Operation* source = operand.getDefiningOp())
          if (Operation* ancestor = block->findAncestorOpInBlock(*source))
            open.push_back(ancestor);
    });
  }
  return false;
}

/// Conversions that one collective does, and where it may stand.
struct Bucket {
  Kind kind;
  ArrayAttr axes;
  ir::Phase phase;
  Block* block;
  SmallVector<Conversion, 0> conversions = {};

  Operation* last = nullptr; ///< the last op that makes a value; null: all are arguments
  llvm::SmallPtrSet<Operation*, 8> users = {}; ///< ops of the block that take what is exchanged

  /// Can `conversion`, which is made behind all others or is an argument, be exchanged with them?
  bool takes(const Conversion& conversion, ir::Phase ofConversion) const;
  void add(Conversion conversion);
};

bool Bucket::takes(const Conversion& conversion, ir::Phase ofConversion) const {
  if (kind != conversion.step.kind || axes != conversion.step.axes || phase != ofConversion ||
      block != conversion.block())
    return false;
  if (Operation* source = conversion.value.getDefiningOp())
    return !dependsOn(source, users);
  return !last || llvm::none_of(conversion.uses, [&](OpOperand* use) {
    return block->findAncestorOpInBlock(*use->getOwner())->isBeforeInBlock(last);
  });
}

void Bucket::add(Conversion conversion) {
  last = later(last, conversion.value.getDefiningOp());
  for (OpOperand* use : conversion.uses)
    users.insert(block->findAncestorOpInBlock(*use->getOwner()));
  conversions.push_back(std::move(conversion));
}

/// As the block makes them; arguments, which it does not make, last.
bool comesBefore(Value a, Value b) {
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (x && x == y)
    return cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber();
  if (x && y)
    return x->getBlock() == y->getBlock() && x->isBeforeInBlock(y);
  if (x || y)
    return bool(x);
  return cast<BlockArgument>(a).getArgNumber() < cast<BlockArgument>(b).getArgNumber();
}

std::vector<Bucket> bucketsOf(SmallVector<Conversion> conversions, bool isTree) {
  auto order = llvm::to_vector(llvm::seq(conversions.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    const Value x = conversions[a].value, y = conversions[b].value;
    return x == y ? a < b : comesBefore(x, y);
  });
  std::vector<Bucket> buckets;
  for (size_t i : order) {
    Conversion& conversion = conversions[i];
    const ir::Phase phase = phaseOf(conversion, isTree);
    auto bucket =
        llvm::find_if(buckets, [&](Bucket& each) { return each.takes(conversion, phase); });
    if (bucket == buckets.end())
      bucket = buckets.insert(
          bucket, Bucket{conversion.step.kind, conversion.step.axes, phase, conversion.block()});
    bucket->add(std::move(conversion));
  }
  return buckets;
}

/// Why ranks exchange the values of `bucket`.
StringRef reasonOf(const Bucket& bucket, const FunctionPlacements& placements) {
  if (bucket.kind == Kind::AllGather)
    return "each rank has updated its part, and all need all of the parameters";
  if (bucket.phase == ir::Phase::Update)
    return "each rank has a term of what the update and the metrics need";
  if (bucket.kind == Kind::ReduceScatter)
    return "each rank has the gradients of its own microbatches, and updates its part of the "
           "parameters";
  const bool isOfParts = llvm::any_of(placements[bucket.conversions.front().value],
                                      [](AxisPlacement on) { return on.isShard(); });
  return isOfParts ? "each rank has the gradients of some microbatches for the part that it updates"
                   : "each rank has the gradients of its own microbatches, and all update all "
                     "parameters";
}

/// How often a rank runs what stands in `block`, in words behind a comma; nothing for once.
std::string timesOf(Block* block, ArrayRef<MicrobatchLoop> loops) {
  int64_t times = 1;
  unsigned depth = 0;
  for (auto loop = dyn_cast<accum::LoopOp>(block->getParentOp()); loop; loop = loop.getOuter())
    times *= depth < loops.size() ? loops[depth++].local : 1;
  return times == 1 ? "" : llvm::formatv(", {0} times a step", times).str();
}

/// Builds the buckets of one function.
class CollectiveBuilder {
public:
  CollectiveBuilder(func::FuncOp function, FunctionPlacements& placements, const Recipe& recipe)
      : function_(function), placements_(placements), recipe_(recipe),
        builder_(function.getContext()) {}

  void build(const Bucket& bucket);
  void take(const Conversion& conversion);

private:
  void setInsertionPoint(const Bucket& bucket);
  void moveUsersBehind(const Bucket& bucket, Operation* collective);
  Value narrowed(const Bucket& bucket, Value value, StringRef name);
  Value padded(const Conversion& conversion, Value value, StringRef name, ir::Phase phase);
  Operation* create(const Bucket& bucket, ValueRange values);

  func::FuncOp function_;
  FunctionPlacements& placements_;
  const Recipe& recipe_;
  OpBuilder builder_;
  SmallVector<StringRef> path_; ///< of the collective that is built
};

/// Right behind the values, and behind what else of backward follows them if it is the update's.
void CollectiveBuilder::setInsertionPoint(const Bucket& bucket) {
  Operation* next = bucket.last ? bucket.last->getNextNode() : &bucket.block->front();
  if (bucket.phase == ir::Phase::Update && bucket.last)
    while (ir::getPhase(next) == ir::Phase::Backward)
      next = next->getNextNode();
  builder_.setInsertionPoint(next);
}

/// What takes a sum that is there later than its values, stands behind it.
void CollectiveBuilder::moveUsersBehind(const Bucket& bucket, Operation* collective) {
  llvm::SmallPtrSet<Operation*, 16> moved(bucket.users.begin(), bucket.users.end());
  Operation* last = collective;
  for (Operation& op : llvm::make_early_inc_range(
           llvm::make_range(bucket.block->begin(), collective->getIterator()))) {
    if (!moved.contains(&op))
      continue;
    op.moveAfter(last);
    last = &op;
    for (Operation* user : op.getUsers())
      moved.insert(bucket.block->findAncestorOpInBlock(*user));
  }
}

/// `value` in the type in which gradients are exchanged.
Value CollectiveBuilder::narrowed(const Bucket& bucket, Value value, StringRef name) {
  if (bucket.phase != ir::Phase::Backward || recipe_.precision.reduceDtype == "f32")
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.getElementType().isF32())
    return value;
  // What comes from a collective was only widened.
  if (auto wide = value.getDefiningOp<ir::ConvertOp>();
      wide && wide.getOperand().getDefiningOp() &&
      dist::isWholeCollective(wide.getOperand().getDefiningOp()))
    return wide.getOperand();
  auto narrow = ir::ConvertOp::create(builder_, value.getLoc(), type.clone(builder_.getBF16Type()),
                                      value, builder_.getStrArrayAttr(name),
                                      ir::PhaseAttr::get(builder_.getContext(), bucket.phase));
  placements_.define(narrow, value, placements_[value]);
  narrow.getResult().setType(
      localType(placements_.wholeType(narrow), placements_[narrow], placements_.mesh()));
  return narrow;
}

/// `value`, which `conversion` divides, with zeros behind it so that it divides.
Value CollectiveBuilder::padded(const Conversion& conversion, Value value, StringRef name,
                                ir::Phase phase) {
  const auto element = cast<ShapedType>(value.getType()).getElementType();
  const ir::TensorBuilder t(builder_, value.getLoc(), builder_.getStrArrayAttr(name),
                            ir::PhaseAttr::get(builder_.getContext(), phase));
  const Value joined = padTo(t, value, typeBefore(conversion, placements_).clone(element),
                             joinedTypeOf(conversion, placements_).clone(element));
  if (joined != value)
    placements_.define(joined, value, placements_[value]);
  return joined;
}

Operation* CollectiveBuilder::create(const Bucket& bucket, ValueRange values) {
  const Location loc = bucket.last ? bucket.last->getLoc() : function_.getLoc();
  SmallVector<Type> types;
  SmallVector<int64_t> dims;
  for (auto [conversion, value] : llvm::zip_equal(bucket.conversions, values)) {
    auto element = cast<ShapedType>(value.getType()).getElementType();
    RankedTensorType after = bucket.kind == Kind::AllGather ? joinedTypeOf(conversion, placements_)
                                                            : typeAfter(conversion, placements_);
    types.push_back(after.clone(element));
    dims.push_back(conversion.step.dim);
  }
  ArrayAttr path = builder_.getStrArrayAttr(path_);
  auto phase = ir::PhaseAttr::get(builder_.getContext(), bucket.phase);
  const dist::Order order = recipe_.mesh.isTree() ? dist::Order::Tree : dist::Order::Rank;
  switch (bucket.kind) {
  case Kind::ReduceScatter:
    return dist::ReduceScatterOp::create(builder_, loc, types, values, dims, order, bucket.axes,
                                         path, phase);
  case Kind::AllReduce:
    return dist::AllReduceOp::create(builder_, loc, types, values, order, bucket.axes, path, phase);
  default:
    return dist::AllGatherOp::create(builder_, loc, types, values, dims, bucket.axes, path, phase);
  }
}

void CollectiveBuilder::build(const Bucket& bucket) {
  setInsertionPoint(bucket);
  std::vector<std::string> names;
  SmallVector<Value> narrow, values;
  int64_t bytes = 0;
  for (const Conversion& conversion : bucket.conversions) {
    names.push_back(nameOf(conversion, placements_));
    narrow.push_back(narrowed(bucket, conversion.value, names.back()));
    auto element = cast<ShapedType>(narrow.back().getType()).getElementType();
    const bool scatters = bucket.kind == Kind::ReduceScatter;
    values.push_back(scatters ? padded(conversion, narrow.back(), names.back(), bucket.phase)
                              : narrow.back());
    bytes += bytesOf(
        (scatters ? joinedTypeOf(conversion, placements_) : typeBefore(conversion, placements_))
            .clone(element));
  }
  path_.assign(names.begin(), names.end());
  Operation* op = create(bucket, values);
  remark::passed(op->getLoc(), remark::RemarkOpts::name("partition").category("shard"))
      << remark::add("{0} of {1} over {2}, {3} bytes{4}: {5}", op->getName().stripDialect(),
                     ir::pathString(op),
                     llvm::join(bucket.axes.getAsValueRange<StringAttr>(), ", "), bytes,
                     timesOf(op->getBlock(), placements_.loops()), reasonOf(bucket, placements_));
  for (auto [conversion, value, result, name] :
       llvm::zip_equal(bucket.conversions, narrow, op->getResults(), names)) {
    placements_.define(result, value, conversion.step.result);
    Value given = bucket.kind == Kind::AllGather
                      ? cutJoined(builder_, conversion, result, placements_)
                      : result;
    if (value != conversion.value) {
      given = ir::ConvertOp::create(builder_, op->getLoc(), typeAfter(conversion, placements_),
                                    result, builder_.getStrArrayAttr(StringRef(name)),
                                    ir::PhaseAttr::get(builder_.getContext(), bucket.phase));
      placements_.define(given, conversion.value, conversion.step.result);
    }
    for (OpOperand* use : conversion.uses)
      use->set(given);
    // The sum of one step was widened for its readers; the next goes on from the narrow one.
    if (auto wide = conversion.value.getDefiningOp<ir::ConvertOp>();
        wide && wide.getOperand() == value && wide->use_empty())
      wide->erase();
  }
  moveUsersBehind(bucket, &*std::prev(builder_.getInsertionPoint()));
}

/// The part of what all ranks have: of a constant with one value, and of a broadcast scalar, made
/// at once.
void CollectiveBuilder::take(const Conversion& conversion) {
  Operation* before = firstReader(conversion.uses, conversion.block());
  builder_.setInsertionPoint(before);
  const RankedTensorType type = typeAfter(conversion, placements_);
  Operation* source = conversion.value.getDefiningOp();
  auto constant = dyn_cast_if_present<ir::ConstantOp>(source);
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  Value part;
  if (splat) {
    part = ir::ConstantOp::create(
        builder_, source->getLoc(), cast<TypedAttr>(Attribute(splat.resizeSplat(type))),
        ir::getPath(source), ir::PhaseAttr::get(builder_.getContext(), ir::getPhase(source)));
  } else if (auto broadcast = dyn_cast_if_present<ir::BroadcastOp>(source);
             broadcast && cast<ShapedType>(broadcast.getOperand().getType()).getRank() == 0) {
    Operation* copy = builder_.clone(*source);
    copy->getResult(0).setType(type);
    part = copy->getResult(0);
  } else {
    const std::string name = nameOf(conversion, placements_);
    const ir::Phase phase = ir::getPhase(before);
    const Value joined = padded(conversion, conversion.value, name, phase);
    part = dist::TakeShardOp::create(builder_, before->getLoc(), type, joined, conversion.step.axes,
                                     conversion.step.dim, builder_.getStrArrayAttr(StringRef(name)),
                                     ir::PhaseAttr::get(builder_.getContext(), phase));
  }
  placements_.define(part, conversion.value, conversion.step.result);
  for (OpOperand* use : conversion.uses)
    use->set(part);
}

/// Does the update give the whole back to the job?
bool isUpdated(const Conversion& conversion) {
  return llvm::any_of(conversion.uses, [](OpOperand* use) {
    auto terminator = dyn_cast<func::ReturnOp>(use->getOwner());
    return terminator && cast<func::FuncOp>(terminator->getParentOp())
                             .getResultAttr(use->getOperandNumber(), ir::tag::state);
  });
}

} // namespace

LogicalResult insertCollectives(func::FuncOp function, FunctionPlacements& placements,
                                const Recipe& recipe) {
  CollectiveBuilder builder(function, placements, recipe);
  for (;;) {
    FailureOr<SmallVector<Conversion>> conversions = conversionsOf(function, placements);
    if (failed(conversions))
      return failure();
    if (conversions->empty())
      return success();
    SmallVector<Conversion> together, gathers;
    for (Conversion& conversion : *conversions) {
      if (conversion.step.kind == Kind::TakeShard)
        builder.take(conversion);
      else if (conversion.sums() || isUpdated(conversion))
        together.push_back(std::move(conversion));
      else
        gathers.push_back(std::move(conversion));
    }
    const std::vector<Bucket> buckets = bucketsOf(std::move(together), recipe.mesh.isTree());
    // Each goes right behind its values. What is built first stands last: those of the update
    // behind those of backward.
    for (ir::Phase phase : {ir::Phase::Update, ir::Phase::Backward})
      for (const Bucket& bucket : llvm::reverse(buckets))
        if (bucket.phase == phase)
          builder.build(bucket);
    if (failed(placeGathers(gathers, placements, recipe.mesh)))
      return failure();
  }
}

} // namespace titan
