#include "frontend/raise/Layout.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_SINKRESHAPES
#include "frontend/raise/Passes.h.inc"

namespace {

/// A reshape that flattens leading dimensions of `source` in the shape `shape`.
struct Merge {
  Value source;
  SmallVector<int64_t> shape;
  DimGroups groups; ///< of `shape`, for each dimension of the result

  Value operand(const ir::TensorBuilder& b) const { return reshaped(b, source, shape); }
};

/// The dimension that `value`, a transposed broadcast, only repeats along, if it repeats its left
/// neighbour's elements: heads for a group of queries, which stay one dimension with it, because
/// attention knows them as such.
std::optional<size_t> repeatedDim(Value value) {
  SmallVector<int64_t> position = llvm::to_vector(llvm::seq(ir::tensorType(value).getRank()));
  while (auto transpose = value.getDefiningOp<ir::TransposeOp>()) {
    for (int64_t& d : position)
      d = transpose.getPermutation()[d];
    value = transpose.getOperand();
  }
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast || broadcast.getDims().size() + 1 != position.size())
    return std::nullopt;
  for (size_t d = 1; d < position.size(); ++d)
    if (!llvm::is_contained(broadcast.getDims(), position[d]))
      return d;
  return std::nullopt;
}

/// Does any group have more than one dimension of an extent above 1? A mere index leaves a
/// dimension of extent 1 to drop, and that may stay where it is.
bool mergesAny(const DimGroups& groups, ArrayRef<int64_t> shape) {
  return llvm::any_of(groups, [&](ArrayRef<int64_t> group) {
    return llvm::count_if(group, [&](int64_t d) { return shape[d] != 1; }) > 1;
  });
}

std::optional<Merge> matchMerge(Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  if (!reshape)
    return std::nullopt;
  Value source = reshape.getOperand();
  ArrayRef<int64_t> to = ir::tensorType(value).getShape();
  SmallVector<int64_t> shape(ir::tensorType(source).getShape());
  if (shape.empty() || to.empty())
    return std::nullopt;
  if (std::optional<size_t> repeated = repeatedDim(source)) {
    shape[*repeated - 1] *= shape[*repeated];
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(*repeated));
  }
  // The last dimension may be merged or split too (heads): that part of the reshape stays where it
  // is.
  while (shape.size() > 1 && shape.back() < to.back()) {
    int64_t inner = shape.pop_back_val();
    shape.back() *= inner;
  }
  if (shape.back() > to.back() && shape.back() % to.back() == 0) {
    shape.back() /= to.back();
    shape.push_back(to.back());
  }
  auto groups = matchLeadingMerge(shape, to);
  if (!groups || (shape.front() != 1 && !mergesAny(*groups, shape)))
    return std::nullopt;
  return Merge{source, shape, *groups};
}

struct ComposeReshapes : RaisePattern<ir::ReshapeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReshapeOp op, ir::TensorBuilder& b) const override {
    if (op.getOperand().getType() == op.getType())
      return op.getOperand();
    auto inner = op.getOperand().getDefiningOp<ir::ReshapeOp>();
    return inner ? reshaped(b, inner.getOperand(), op.getType().getShape()) : Value();
  }
};

/// A reshape of a broadcast with dimensions of extent 1, as a tile makes them: the broadcast
/// without them.
struct SqueezeBroadcast : RaisePattern<ir::ReshapeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReshapeOp op, ir::TensorBuilder& b) const override {
    auto broadcast = op.getOperand().getDefiningOp<ir::BroadcastOp>();
    if (!broadcast)
      return {};
    ArrayRef<int64_t> wide = ir::tensorType(broadcast.getResult()).getShape();
    SmallVector<int64_t> kept(wide), inner, dims;
    llvm::erase(kept, 1);
    if (kept.size() == wide.size())
      return {};
    for (int64_t d : broadcast.getDims())
      if (wide[d] != 1) {
        inner.push_back(wide[d]);
        dims.push_back(llvm::count_if(wide.take_front(d), [](int64_t e) { return e != 1; }));
      }
    Value squeezed = b.broadcast(reshaped(b, broadcast.getOperand(), inner), kept, dims);
    return reshaped(b, squeezed, op.getType().getShape());
  }
};

/// reshape(x) * W^T becomes reshape(x * W^T); a split batch is split in both operands.
struct SinkThroughContract : RaisePattern<ir::ContractOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ContractOp op, ir::TensorBuilder& b) const override {
    if (op.getAcc())
      return {};
    Side lhs{op.getLhs(), op.getLhsBatch(), op.getLhsContracting()};
    Side rhs{op.getRhs(), op.getRhsBatch(), op.getRhsContracting()};
    for (auto [side, other] : {std::pair(&lhs, &rhs), {&rhs, &lhs}}) {
      std::optional<Merge> merge = matchMerge(side->value);
      if (!merge ||
          llvm::any_of(side->contracting, [&](int64_t d) { return merge->groups[d].size() != 1; }))
        continue;
      SmallVector<SmallVector<int64_t>> batchExtents; // of each batch dimension's parts
      for (int64_t d : side->batch) {
        batchExtents.emplace_back();
        for (int64_t part : merge->groups[d])
          batchExtents.back().push_back(merge->shape[part]);
      }
      split(*other, batchExtents, b);
      side->value = merge->operand(b);
      side->batch = parts(side->batch, merge->groups);
      side->contracting = parts(side->contracting, merge->groups);
      Value product = b.create<ir::ContractOp>(
          lhs.value, rhs.value, Value(), ArrayRef<int64_t>(lhs.batch), ArrayRef<int64_t>(rhs.batch),
          ArrayRef<int64_t>(lhs.contracting), ArrayRef<int64_t>(rhs.contracting));
      return b.reshape(product, ir::tensorType(op.getResult()).getShape());
    }
    return {};
  }

private:
  struct Side {
    Side(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contracting)
        : value(value), batch(batch), contracting(contracting) {}
    Value value;
    SmallVector<int64_t> batch, contracting;
  };

  static SmallVector<int64_t> parts(ArrayRef<int64_t> dims, const DimGroups& groups) {
    SmallVector<int64_t> result;
    for (int64_t d : dims)
      llvm::append_range(result, groups[d]);
    return result;
  }

  /// Splits the batch dimensions of `side` into `extents`.
  static void split(Side& side, ArrayRef<SmallVector<int64_t>> extents, ir::TensorBuilder& b) {
    SmallVector<int64_t> shape;
    DimGroups groups;
    for (auto [d, extent] : llvm::enumerate(ir::tensorType(side.value).getShape())) {
      auto it = llvm::find(side.batch, static_cast<int64_t>(d));
      SmallVector<int64_t> own = {extent};
      if (it != side.batch.end())
        own = extents[it - side.batch.begin()];
      groups.emplace_back();
      for (int64_t part : own) {
        groups.back().push_back(static_cast<int64_t>(shape.size()));
        shape.push_back(part);
      }
    }
    side.value = reshaped(b, side.value, shape);
    side.batch = parts(side.batch, groups);
    side.contracting = parts(side.contracting, groups);
  }
};

/// f(reshape(x), y) becomes reshape(f(x, y')), y' the split y.
struct SinkThroughElementwise : RewritePattern {
  explicit SinkThroughElementwise(MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (!isElementwise(op))
      return failure();
    std::optional<Merge> merge;
    for (Value operand : op->getOperands())
      if (!merge)
        merge = matchMerge(operand);
    if (!merge)
      return failure();
    ir::TensorBuilder b(rewriter, op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(reshaped(b, operand, merge->shape));
    Value result = cloneElementwise(rewriter, op, operands);
    rewriter.replaceOp(op, b.reshape(result, ir::tensorType(op->getResult(0)).getShape()));
    return success();
  }
};

struct SinkThroughSoftmax : RaisePattern<ir::SoftmaxOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::SoftmaxOp op, ir::TensorBuilder& b) const override {
    std::optional<Merge> merge = matchMerge(op.getOperand());
    auto dim = static_cast<int64_t>(op.getDim());
    if (!merge || merge->groups[dim].size() != 1)
      return {};
    Value softmax = b.create<ir::SoftmaxOp>(
        merge->operand(b), b.builder.getI64IntegerAttr(merge->groups[dim].front()));
    return b.reshape(softmax, op.getType().getShape());
  }
};

struct SinkThroughReduce : RaisePattern<ir::ReduceOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReduceOp op, ir::TensorBuilder& b) const override {
    std::optional<Merge> merge = matchMerge(op.getOperand());
    if (!merge)
      return {};
    SmallVector<int64_t> dims;
    for (int64_t d : op.getDims()) {
      if (merge->groups[d].size() != 1)
        return {};
      dims.push_back(merge->groups[d].front());
    }
    Value reduced = b.reduce(op.getKind(), merge->operand(b), dims);
    return reshaped(b, reduced, ir::tensorType(op.getResult()).getShape());
  }
};

/// A norm of each row does not mind how the rows are counted.
template <typename Op> struct SinkThroughNorm : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    std::optional<Merge> merge = matchMerge(op.getOperand());
    if (!merge || !hasOnlyResult(op))
      return {};
    SmallVector<int64_t> dims;
    for (int64_t d : normalisedDims(op)) {
      if (merge->groups[d].size() != 1)
        return {};
      dims.push_back(merge->groups[d].front());
    }
    Value norm = cloneNorm(b, op, merge->operand(b), dims);
    return b.reshape(norm, ir::tensorType(op.getResult()).getShape());
  }
};

/// Random decisions are counted in row-major order, which a reshape keeps.
struct SinkThroughDropout : RaisePattern<ir::DropoutOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::DropoutOp op, ir::TensorBuilder& b) const override {
    std::optional<Merge> merge = matchMerge(op.getOperand());
    if (!merge || op.getSeed() || op.getWindow())
      return {};
    Value operand = merge->operand(b);
    SmallVector<int64_t> shared;
    for (int64_t d : op.getShared())
      llvm::append_range(shared, merge->groups[d]);
    Value dropped = b.create<ir::DropoutOp>(
        operand.getType(), operand, Value(), Value(), Value(), op.getPAttr(), op.getStreamAttr(),
        b.builder.getDenseI64ArrayAttr(shared), ir::WindowAttr());
    return b.reshape(dropped, ir::tensorType(op.getResult()).getShape());
  }
};

struct SinkThroughTranspose : RaisePattern<ir::TransposeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::TransposeOp op, ir::TensorBuilder& b) const override {
    std::optional<Merge> merge = matchMerge(op.getOperand());
    if (!merge)
      return {};
    SmallVector<int64_t> permutation;
    for (int64_t d : op.getPermutation())
      llvm::append_range(permutation, merge->groups[d]);
    return b.reshape(transposed(b, merge->operand(b), permutation),
                     ir::tensorType(op.getResult()).getShape());
  }
};

struct SinkReshapes : RaisePass<impl::SinkReshapesBase<SinkReshapes>> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<ComposeReshapes, SqueezeBroadcast, SinkThroughContract, SinkThroughElementwise,
            SinkThroughSoftmax, SinkThroughReduce, SinkThroughNorm<ir::LayerNormOp>,
            SinkThroughNorm<ir::RmsNormOp>, SinkThroughDropout, SinkThroughTranspose>(
        set.getContext());
  }
};

} // namespace

void addReshapeFolds(RewritePatternSet& set) { set.add<ComposeReshapes>(set.getContext()); }

} // namespace titan::frontend
