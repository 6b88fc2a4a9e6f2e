#include "compiler/Shard/VerifyPadding.h"

#include "compiler/Support/TaggedFunction.h"
#include "dialects/Accum/Accum.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Titan/Titan.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace titan {

namespace {

/// One cut of a dimension: its extent before, and how many ranks have a part.
struct DimCut {
  int64_t extent, ranks;
  bool pads() const { return extent % ranks != 0; }
  bool operator==(const DimCut&) const = default;
};

/// What of a tensor a value is.
struct Part {
  SmallVector<SmallVector<DimCut, 1>> cuts; ///< by dimension, the outermost first
  bool isZero = false;                      ///< in its padding; a constant: everywhere
  bool operator==(const Part&) const = default;

  bool pads(int64_t dim) const {
    return llvm::any_of(cuts[dim], [](const DimCut& cut) { return cut.pads(); });
  }
  bool pads() const {
    return llvm::any_of(llvm::seq<int64_t>(cuts.size()), [&](int64_t dim) { return pads(dim); });
  }
};

Part wholeOf(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return {SmallVector<SmallVector<DimCut, 1>>(type ? type.getRank() : 0), false};
}

bool isZero(ir::ConstantOp constant) {
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  auto number = splat ? dyn_cast<FloatAttr>(splat.getSplatValue<Attribute>()) : FloatAttr();
  return number && number.getValue().isZero();
}

/// The pad that makes `value` divide among ranks; null without one. A cast may stand between.
ir::PadOp padOf(Value value) {
  while (auto convert = value.getDefiningOp<ir::ConvertOp>())
    value = convert.getOperand();
  return value.getDefiningOp<ir::PadOp>();
}

/// Is `slice` the first `extent` elements along `dim`?
bool cutsTo(ir::SliceOp slice, int64_t dim, int64_t extent) {
  return slice.getOffsets()[dim] == 0 && slice.getStrides()[dim] == 1 &&
         cast<ShapedType>(slice.getType()).getDimSize(dim) == extent;
}

class PaddingVerifier {
public:
  explicit PaddingVerifier(func::FuncOp function)
      : function_(function), mesh_(dist::meshOf(function)) {}

  LogicalResult run() {
    for (BlockArgument argument : function_.getArguments())
      parts_[argument] = partOfArgument(argument);
    return visit(function_.getBody().front());
  }

private:
  /// What a rank has of the state that `argument` is, by its placement.
  Part partOfArgument(BlockArgument argument) {
    Part part = wholeOf(argument);
    ir::StateOp state = TaggedFunction(function_).argumentState(argument.getArgNumber());
    std::optional<ir::PlacementAttr> placement =
        state ? state.getPlacement() : std::optional<ir::PlacementAttr>();
    if (!placement)
      return part;
    SmallVector<int64_t> extents(state.getTensorType().getShape());
    for (auto [axis, dim] : llvm::zip_equal(placement->getAxes(), placement->getDims())) {
      const int64_t ranks = mesh_.getExtents()[*mesh_.find(axis)];
      part.cuts[dim].push_back({extents[dim], ranks});
      extents[dim] = llvm::divideCeil(extents[dim], ranks);
    }
    return part;
  }

  LogicalResult visit(Block& block) {
    for (Operation& op : block)
      if (failed(visit(&op)))
        return failure();
    return success();
  }

  LogicalResult visit(Operation* op) {
    if (auto loop = dyn_cast<accum::LoopOp>(op))
      return visitLoop(loop);
    if (auto end = dyn_cast<func::ReturnOp>(op))
      return visitReturn(end);
    if (isa<accum::YieldOp>(op))
      return success();
    for (Value result : op->getResults())
      parts_[result] = wholeOf(result);
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      parts_[constant].isZero = isZero(constant);
      return success();
    }
    if (isa<dist::AllGatherOp>(op))
      return visitGather(op);
    if (isa<dist::ReduceScatterOp, dist::TakeShardOp>(op))
      return visitScatter(op);
    if (isa<dist::AllReduceOp>(op)) {
      for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults()))
        set(result, parts_[operand]);
      return success();
    }
    if (auto slice = dyn_cast<ir::SliceOp>(op))
      if (slice.getOperand().getDefiningOp<dist::AllGatherOp>()) {
        set(slice, parts_[slice.getOperand()]);
        return success();
      }
    return visitByFactors(op);
  }

  int64_t groupOf(Operation* collective) {
    return mesh_.groupSize(collective->getAttrOfType<ArrayAttr>("axes"));
  }
  static int64_t dimOf(Operation* collective, unsigned operand) {
    if (auto take = dyn_cast<dist::TakeShardOp>(collective))
      return take.getDim();
    return collective->getAttrOfType<DenseI64ArrayAttr>("dims")[operand];
  }

  /// A part of what is whole, or of a part.
  LogicalResult visitScatter(Operation* op) {
    for (auto [i, operand, result] : llvm::enumerate(op->getOperands(), op->getResults())) {
      const int64_t dim = dimOf(op, i);
      Part part = parts_[operand];
      int64_t extent = cast<ShapedType>(operand.getType()).getDimSize(dim);
      part.isZero = !part.pads() || part.isZero;
      if (ir::PadOp pad = padOf(operand)) {
        extent = cast<ShapedType>(pad.getOperand().getType()).getDimSize(dim);
        part.isZero &= pad.getValue().isZero();
      }
      part.cuts[dim].push_back({extent, groupOf(op)});
      parts_[result] = std::move(part);
    }
    return success();
  }

  /// The parts joined, with the padding of each where it was: behind all others only if the
  /// innermost cut is undone.
  LogicalResult visitGather(Operation* op) {
    for (auto [i, operand, result] : llvm::enumerate(op->getOperands(), op->getResults())) {
      const int64_t dim = dimOf(op, i);
      Part part = parts_[operand];
      if (part.cuts[dim].empty()) {
        parts_[result] = wholeOf(result);
        continue;
      }
      FailureOr<DimCut> cut = undoCuts(op, part.cuts[dim]);
      parts_[result] = std::move(part);
      if (failed(cut) || (cut->pads() && failed(verifyJoined(result, dim, cut->extent))))
        return failure();
    }
    return success();
  }

  /// Takes the cuts among the ranks of `gather` from `cuts`; returns the outermost of them.
  FailureOr<DimCut> undoCuts(Operation* gather, SmallVector<DimCut, 1>& cuts) {
    DimCut cut = cuts.pop_back_val();
    for (int64_t ranks = cut.ranks; ranks < groupOf(gather) && !cuts.empty(); ranks *= cut.ranks) {
      if (cut.pads())
        return gather->emitOpError("joins parts of ")
               << cut.extent << " elements on " << cut.ranks
               << " ranks with their padding in between: gather them alone, and cut it off";
      cut = cuts.pop_back_val();
    }
    return cut;
  }

  LogicalResult verifyJoined(Value joined, int64_t dim, int64_t extent) {
    for (Operation* user : joined.getUsers()) {
      auto slice = dyn_cast<ir::SliceOp>(user);
      if (!slice || !cutsTo(slice, dim, extent))
        return user->emitOpError("reads the padding of what ranks have joined: ")
               << joined.getType() << " has " << extent << " elements along dimension " << dim;
    }
    return success();
  }

  LogicalResult visitByFactors(Operation* op) {
    auto shardable = dyn_cast<ir::ShardableOpInterface>(op);
    std::optional<ir::ShardingRule> rule;
    if (shardable && llvm::any_of(op->getOperands(), [&](Value operand) { return isCut(operand); }))
      rule = shardable.getShardingRule();
    const bool givesZero = keepsZero(op);
    for (Value result : op->getResults())
      parts_[result].isZero = givesZero;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      for (auto [dim, cuts] : llvm::enumerate(parts_[operand].cuts))
        if (!cuts.empty() && failed(passCuts(op, rule, i, dim)))
          return failure();
    return success();
  }

  bool isCut(Value value) {
    return llvm::any_of(parts_[value].cuts, [](const auto& cuts) { return !cuts.empty(); });
  }

  /// The results of `op` are cut like dimension `dim` of its operand `i`.
  LogicalResult passCuts(Operation* op, const std::optional<ir::ShardingRule>& rule, unsigned i,
                         int64_t dim) {
    const Part part = parts_[op->getOperand(i)];
    const auto factors = rule ? ArrayRef(rule->operands[i][dim]) : ArrayRef<int64_t>();
    const bool isMany = factors.size() != 1;
    const auto kind = isMany ? ir::FactorKind::Whole : rule->factors[factors.front()].kind;
    const bool readsSum = kind == ir::FactorKind::Reduction && part.isZero;
    if (kind != ir::FactorKind::Parallel && !readsSum && part.pads(dim))
      return op->emitOpError("reads the padding of operand ")
             << i << ": the parts of dimension " << dim << " have " << part.cuts[dim].back().extent
             << " elements on " << part.cuts[dim].back().ranks
             << " ranks, and what is behind them is any number";
    if (kind != ir::FactorKind::Parallel)
      return success();
    for (auto [dims, result] : llvm::zip_equal(rule->results, op->getResults()))
      if (int64_t to = ir::ShardingRule::findDim(dims, factors.front()); to >= 0)
        parts_[result].cuts[to] = part.cuts[dim];
    return success();
  }

  /// Is the padding of the results zero?
  bool keepsZero(Operation* op) {
    auto isZero = [&](Value operand) { return parts_[operand].isZero; };
    if (isa<ir::MulOp>(op))
      return llvm::any_of(op->getOperands(), isZero) &&
             llvm::all_of(op->getOperands(), [&](Value operand) {
               return isZero(operand) || !parts_[operand].pads();
             });
    const bool passes = isa<ir::AddOp, ir::SubOp, ir::NegOp, ir::ConvertOp, ir::TransposeOp,
                            ir::BroadcastOp, ir::ReduceOp>(op);
    return passes && llvm::all_of(op->getOperands(), isZero);
  }

  /// What an iteration leaves in an accumulator the next one finds there: the second visit of the
  /// body knows it, and so on until no more is learnt.
  LogicalResult visitLoop(accum::LoopOp loop) {
    parts_[loop.getIndex()] = wholeOf(loop.getIndex());
    for (Value slice : loop.getSlices())
      parts_[slice] = wholeOf(slice);
    for (auto [accumulator, init] : llvm::zip(loop.getAccumulators(), loop.getInits()))
      set(accumulator, parts_[init]);
    for (bool hasChanged = true; hasChanged;) {
      if (failed(visit(loop.getBlock())))
        return failure();
      hasChanged = false;
      for (auto [accumulator, yielded] : llvm::zip(loop.getAccumulators(), loop.getYieldedSums())) {
        Part next = parts_[yielded];
        next.isZero &= parts_[accumulator].isZero;
        hasChanged |= next != parts_[accumulator];
        set(accumulator, next);
      }
    }
    for (Value stack : loop.getStacks())
      parts_[stack] = wholeOf(stack);
    for (auto [sum, yielded] : llvm::zip_equal(loop.getSums(), loop.getYieldedSums()))
      set(sum, parts_[yielded]);
    return success();
  }

  void set(Value value, Part part) { parts_[value] = std::move(part); }

  LogicalResult visitReturn(func::ReturnOp end) {
    for (auto [i, value] : llvm::enumerate(end.getOperands()))
      if (parts_[value].pads() && !function_.getResultAttr(i, ir::tag::state))
        return function_.emitError("result ") << i << " is a part with padding, and no state";
    return success();
  }

  func::FuncOp function_;
  dist::MeshAttr mesh_;
  llvm::DenseMap<Value, Part> parts_;
};

} // namespace

LogicalResult verifyPadding(func::FuncOp function) { return PaddingVerifier(function).run(); }

} // namespace titan
