#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

LogicalResult sinkTranspose(Operation* op, PatternRewriter& rewriter, bool several,
                            llvm::function_ref<bool(Value)> isFree) {
  if (!isElementwise(op))
    return failure();
  ir::TransposeOp transpose;
  for (Value operand : op->getOperands()) {
    auto own = operand.getDefiningOp<ir::TransposeOp>();
    if (own && !transpose)
      transpose = own;
    else if (own ? !several || own.getPermutation() != transpose.getPermutation()
                 : !isFree(operand))
      return failure();
  }
  if (!transpose)
    return failure();
  ir::TensorBuilder b(rewriter, op);
  SmallVector<int64_t> back = inverse(transpose.getPermutation());
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(transposed(b, operand, back));
  Value result = cloneElementwise(rewriter, op, operands);
  rewriter.replaceOp(op, b.transpose(result, transpose.getPermutation()));
  return success();
}

namespace {

/// f(transpose(x), y) becomes transpose(f(x, y')) where y' costs nothing either if y is repeated:
/// biases.
struct SinkThroughElementwise : RewritePattern {
  explicit SinkThroughElementwise(MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    return sinkTranspose(op, rewriter, /*several=*/true, [](Value operand) {
      return splatOf(operand) || operand.getDefiningOp<ir::BroadcastOp>();
    });
  }
};

struct SinkThroughSlice : RaisePattern<ir::SliceOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::SliceOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    RankedTensorType type = ir::tensorType(op.getResult());
    size_t rank = permutation.size();
    SmallVector<int64_t> shape(rank), offsets(rank), strides(rank);
    for (auto [i, d] : llvm::enumerate(permutation)) {
      shape[d] = type.getDimSize(i);
      offsets[d] = op.getOffsets()[i];
      strides[d] = op.getStrides()[i];
    }
    Value slice = b.create<ir::SliceOp>(type.clone(shape), transpose.getOperand(),
                                        ArrayRef<int64_t>(offsets), ArrayRef<int64_t>(strides));
    return b.transpose(slice, permutation);
  }
};

/// The kept dimensions stay in the order that they have before the transposition.
struct SinkThroughReduce : RaisePattern<ir::ReduceOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReduceOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    SmallVector<int64_t> dims =
        llvm::map_to_vector(op.getDims(), [&](int64_t d) { return permutation[d]; });
    llvm::sort(dims);
    SmallVector<int64_t> order;
    for (auto [i, d] : llvm::enumerate(permutation))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(i)))
        order.push_back(d - llvm::count_if(dims, [&](int64_t gone) { return gone < d; }));
    return transposed(b, b.reduce(op.getKind(), transpose.getOperand(), dims), order);
  }
};

/// Several tensors in one other order.
struct SinkThroughConcat : RaisePattern<ir::ConcatOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ConcatOp op, ir::TensorBuilder& b) const override {
    ArrayRef<int64_t> permutation;
    SmallVector<Value> inputs;
    for (Value input : op.getInputs()) {
      auto transpose = input.getDefiningOp<ir::TransposeOp>();
      if (!transpose || (!inputs.empty() && transpose.getPermutation() != permutation))
        return {};
      permutation = transpose.getPermutation();
      inputs.push_back(transpose.getOperand());
    }
    return b.transpose(b.create<ir::ConcatOp>(inputs, permutation[op.getDim()]), permutation);
  }
};

/// A norm of each channel, wherever that is. Its statistics have one dimension.
struct SinkThroughBatchNorm : OpRewritePattern<ir::BatchNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::BatchNormOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return failure();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    ir::TensorBuilder b(rewriter, op);
    SmallVector<Type> types(op->getResultTypes());
    types.front() = transpose.getOperand().getType();
    auto norm = b.create<ir::BatchNormOp>(
        types, transpose.getOperand(), op.getScale(), op.getBias(), op.getRunning(),
        op.getBatches(), rewriter.getI64IntegerAttr(permutation[op.getDim()]), op.getEpsilonAttr(),
        op.getMomentumAttr(), op.getUnbiasedAttr());
    rewriter.replaceOp(
        op, {b.transpose(norm.getResult(), permutation), norm.getMean(), norm.getVariance()});
    return success();
  }
};

/// A norm over the same dimensions, wherever they are. What has one scale for each element of a
/// row keeps its rows together: that is a feature's, of which the next layer makes a product.
struct SinkThroughLayerNorm : OpRewritePattern<ir::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ir::LayerNormOp op, PatternRewriter& rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return failure();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    SmallVector<int64_t> dims =
        llvm::map_to_vector(op.getDims(), [&](int64_t d) { return permutation[d]; });
    SmallVector<int64_t> scaleOrder = sortedOrder(dims), rowOrder;
    const int64_t rank = static_cast<int64_t>(permutation.size()),
                  count = static_cast<int64_t>(dims.size());
    const bool areTogether = dims.front() + count == rank && dims.back() == rank - 1;
    if ((op.getScale() || op.getBias()) && op.getDimsApart().empty() && !areTogether)
      return failure();
    for (int64_t d : op.getKeptDims())
      rowOrder.push_back(permutation[d] -
                         llvm::count_if(dims, [&](int64_t gone) { return gone < permutation[d]; }));
    ir::TensorBuilder b(rewriter, op);
    const auto ordered = [&](Value affine) {
      return affine ? transposed(b, affine, scaleOrder) : Value();
    };
    auto norm =
        b.create<ir::LayerNormOp>(transpose.getOperand(), ordered(op.getScale()),
                                  ordered(op.getBias()), dims, op.getEpsilon().convertToDouble());
    rewriter.replaceOp(op, {b.transpose(norm.getResult(), permutation),
                            transposed(b, norm.getMean(), rowOrder),
                            transposed(b, norm.getRstd(), rowOrder)});
    return success();
  }

private:
  /// Sorts `dims`; the place of each before.
  static SmallVector<int64_t> sortedOrder(SmallVector<int64_t>& dims) {
    const SmallVector<int64_t> before = dims;
    llvm::sort(dims);
    return llvm::map_to_vector(dims, [&](int64_t d) {
      return static_cast<int64_t>(llvm::find(before, d) - before.begin());
    });
  }
};

/// Decisions are counted in row-major order: those that elements share may stand anywhere.
struct SinkThroughDropout : RaisePattern<ir::DropoutOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::DropoutOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose || op.getSeed() || op.getWindow())
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    SmallVector<int64_t> shared, apart;
    for (auto [i, d] : llvm::enumerate(permutation))
      (llvm::is_contained(op.getShared(), static_cast<int64_t>(i)) ? shared : apart).push_back(d);
    if (!llvm::is_sorted(apart))
      return {};
    llvm::sort(shared);
    Value operand = transpose.getOperand();
    return b.transpose(b.create<ir::DropoutOp>(operand.getType(), operand, Value(), Value(),
                                               Value(), op.getPAttr(), op.getStreamAttr(),
                                               b.builder.getDenseI64ArrayAttr(shared),
                                               ir::WindowAttr()),
                       permutation);
  }
};

struct SinkThroughPad : RaisePattern<ir::PadOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::PadOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    RankedTensorType type = op.getType();
    SmallVector<int64_t> shape(permutation.size()), low(shape), interior(shape);
    for (auto [i, d] : llvm::enumerate(permutation)) {
      shape[d] = type.getDimSize(i);
      low[d] = op.getLow()[i];
      interior[d] = op.getInterior()[i];
    }
    Value padded = b.create<ir::PadOp>(type.clone(shape), transpose.getOperand(),
                                       b.builder.getDenseI64ArrayAttr(low),
                                       b.builder.getDenseI64ArrayAttr(interior), op.getValueAttr());
    return b.transpose(padded, permutation);
  }
};

/// A reshape that splits dimensions, or merges ones that are neighbours before the transposition
/// too. Dimensions of extent 1 belong to none of the others: they are first, in the result's order.
struct SinkThroughReshape : RaisePattern<ir::ReshapeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReshapeOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    if (!transpose || movesUnitsAlone(op))
      return {};
    const Squeezed operand(ir::tensorType(transpose.getOperand()).getShape()),
        from(ir::tensorType(transpose.getResult()).getShape()), to(op.getType().getShape());
    SmallVector<int64_t> permutation;
    for (int64_t d : transpose.getPermutation())
      if (operand.places[d] >= 0)
        permutation.push_back(operand.places[d]);
    std::optional<Moved> moved = move(from.shape, to.shape, permutation);
    if (!moved)
      return {};
    const auto units = static_cast<int64_t>(to.places.size() - to.shape.size());
    SmallVector<int64_t> shape(units, 1), order;
    llvm::append_range(shape, moved->shape);
    int64_t unit = 0;
    for (int64_t place : to.places)
      order.push_back(place < 0 ? unit++ : units + moved->order[place]);
    return transposed(b, reshaped(b, transpose.getOperand(), shape), order);
  }

private:
  /// A shape without its dimensions of extent 1.
  struct Squeezed {
    explicit Squeezed(ArrayRef<int64_t> whole) {
      for (int64_t extent : whole) {
        places.push_back(extent == 1 ? -1 : static_cast<int64_t>(shape.size()));
        if (extent != 1)
          shape.push_back(extent);
      }
    }
    SmallVector<int64_t> shape, places; ///< of each dimension; -1: it is none
  };

  /// The shape before the transposition, and the transposition of that.
  struct Moved {
    SmallVector<int64_t> shape, order;
  };

  static std::optional<Moved> move(ArrayRef<int64_t> from, ArrayRef<int64_t> to,
                                   ArrayRef<int64_t> permutation) {
    Moved moved;
    if (auto groups = matchMerge(to, from)) {
      SmallVector<SmallVector<int64_t>> places(from.size());
      for (auto [d, position] : llvm::enumerate(inverse(permutation)))
        for (int64_t part : (*groups)[position]) {
          places[d].push_back(static_cast<int64_t>(moved.shape.size()));
          moved.shape.push_back(to[part]);
        }
      for (int64_t d : permutation)
        llvm::append_range(moved.order, places[d]);
      return moved;
    }
    auto groups = matchMerge(from, to);
    if (!groups)
      return std::nullopt;
    SmallVector<std::pair<int64_t, size_t>> firsts; // of each result dimension in the operand
    for (auto [i, group] : llvm::enumerate(*groups)) {
      for (auto [k, d] : llvm::enumerate(group))
        if (permutation[d] != permutation[group.front()] + static_cast<int64_t>(k))
          return std::nullopt;
      firsts.push_back({permutation[group.front()], i});
    }
    llvm::sort(firsts);
    moved.order.resize(to.size());
    for (auto [place, first] : llvm::enumerate(firsts)) {
      moved.shape.push_back(to[first.second]);
      moved.order[first.second] = static_cast<int64_t>(place);
    }
    return moved;
  }
};

} // namespace

void addTransposeSinks(RewritePatternSet& set) {
  set.add<SinkThroughElementwise, SinkThroughSlice, SinkThroughReduce, SinkThroughConcat,
          SinkThroughBatchNorm, SinkThroughLayerNorm, SinkThroughDropout, SinkThroughPad,
          SinkThroughReshape>(set.getContext());
}

} // namespace titan::frontend
