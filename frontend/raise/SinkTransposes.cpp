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
        rewriter.getI64IntegerAttr(permutation[op.getDim()]), op.getEpsilonAttr(),
        op.getMomentumAttr(), op.getUnbiasedAttr());
    rewriter.replaceOp(
        op, {b.transpose(norm.getResult(), permutation), norm.getMean(), norm.getVariance()});
    return success();
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
/// too.
struct SinkThroughReshape : RaisePattern<ir::ReshapeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ReshapeOp op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().getDefiningOp<ir::TransposeOp>();
    ArrayRef<int64_t> to = op.getType().getShape();
    if (!transpose)
      return {};
    ArrayRef<int64_t> from = ir::tensorType(transpose.getResult()).getShape();
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    // Dimensions of extent 1 belong to none of the others.
    if (llvm::is_contained(from, 1) || llvm::is_contained(to, 1))
      return {};
    SmallVector<int64_t> shape, order;
    if (auto groups = matchMerge(to, from)) {
      SmallVector<SmallVector<int64_t>> places(from.size());
      for (auto [d, position] : llvm::enumerate(inverse(permutation)))
        for (int64_t part : (*groups)[position]) {
          places[d].push_back(static_cast<int64_t>(shape.size()));
          shape.push_back(to[part]);
        }
      for (int64_t d : permutation)
        llvm::append_range(order, places[d]);
    } else if (auto groups = matchMerge(from, to)) {
      SmallVector<std::pair<int64_t, size_t>> firsts; // of each result dimension in the operand
      for (auto [i, group] : llvm::enumerate(*groups)) {
        for (auto [k, d] : llvm::enumerate(group))
          if (permutation[d] != permutation[group.front()] + static_cast<int64_t>(k))
            return {};
        firsts.push_back({permutation[group.front()], i});
      }
      llvm::sort(firsts);
      order.resize(to.size());
      for (auto [place, first] : llvm::enumerate(firsts)) {
        shape.push_back(to[first.second]);
        order[first.second] = static_cast<int64_t>(place);
      }
    } else {
      return {};
    }
    return transposed(b, reshaped(b, transpose.getOperand(), shape), order);
  }
};

} // namespace

void addTransposeSinks(RewritePatternSet& set) {
  set.add<SinkThroughElementwise, SinkThroughSlice, SinkThroughReduce, SinkThroughConcat,
          SinkThroughBatchNorm, SinkThroughPad, SinkThroughReshape>(set.getContext());
}

} // namespace titan::frontend
