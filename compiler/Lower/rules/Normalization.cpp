// Lowering of softmax, layer and root-mean-square normalisation: kernels over whole rows.
#include "compiler/Lower/Reductions.h"
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Lowers an op over rows along `dim` by moving that dimension innermost and back.
template <typename Op>
LogicalResult alongInnermost(Op op, LoweringBuilder& l,
                             function_ref<Value(Body&, Value, int64_t)> body) {
  RankedTensorType type = op.getType();
  int64_t rank = type.getRank(), dim = op.getDim();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[dim], order[rank - 1]); // its own inverse
  bool moved = dim != rank - 1;
  Value operand = moved ? l.transpose(op.getOperand(), order) : op.getOperand();
  Value result = l.elementwise(tensorType(operand), operand,
                               [&](Body& b, ValueRange v) { return body(b, v[0], rank - 1); });
  l.replace(moved ? l.transpose(result, order) : result);
  return success();
}

/// The rows that a norm over some dimensions runs over.
struct NormRows {
  NormRows(LoweringBuilder& l, RankedTensorType type, ArrayRef<int64_t> dims)
      : type(type), inner(dims), all(l.identity(type.getRank())),
        columns(l.project(type.getRank(), inner)) {
    SmallVector<int64_t> outer;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (!llvm::is_contained(inner, d))
        outer.push_back(d);
    rows = l.project(type.getRank(), outer);
    for (int64_t d : inner)
      extent *= type.getDimSize(d);
  }

  RankedTensorType type;
  SmallVector<int64_t> inner;
  AffineMap all, rows, columns;
  int64_t extent = 1;

  /// A statistic, to be read by each element; over `left` innermost dimensions as repeated
  /// elements, so that a kernel's rows are all channels and not those of one group.
  LoweringBuilder::Read readRows(LoweringBuilder& l, Value statistic, int64_t left) const {
    if (left == 0)
      return {statistic, rows};
    const auto rank = all.getNumDims();
    SmallVector<int64_t> dims;
    for (AffineExpr row : rows.getResults())
      dims.push_back(cast<AffineDimExpr>(row).getPosition());
    SmallVector<int64_t> shape(tensorType(statistic).getShape());
    for (int64_t d : ArrayRef(inner).take_back(left)) {
      dims.push_back(d);
      shape.push_back(type.getDimSize(d));
    }
    const auto kept = static_cast<int64_t>(rows.getNumResults());
    Value wide = l.move(tensorType(statistic).clone(shape), statistic,
                        l.project(shape.size(), llvm::to_vector(llvm::seq<int64_t>(0, kept))));
    return {wide, l.project(rank, dims)};
  }

  Value mean(Body& b, Value x) const {
    return b.div(b.reduce(kernel::ReduceKind::Add, x, inner), b.constantLike(x, extent));
  }
};

/// 1 / sqrt(variance + epsilon)
Value reciprocalRoot(Body& b, Value variance, const APFloat& epsilon) {
  Value shifted = b.add(variance, b.constantLike(variance, epsilon.convertToDouble()));
  return b.reciprocal(b.sqrt(shifted));
}

struct Statistics {
  Value mean, variance;
};

/// Of rows that are no runs of memory: sums for the mean, sums of squared differences for the
/// variance (biased), as kernels of their own. `sum` adds up each row of `count` elements, `read`
/// says how an element reads the statistic of its row.
Statistics statisticsApart(LoweringBuilder& l, Value x, RankedTensorType statistic, double count,
                           function_ref<Value(Value)> sum,
                           function_ref<LoweringBuilder::Read(Value)> read) {
  RankedTensorType type = tensorType(x), wide = type.clone(statistic.getElementType());
  const AffineMap all = l.identity(type.getRank());
  const auto meanOf = [&](Value terms) {
    return l.elementwise(statistic, sum(terms), [&](Body& b, ValueRange v) {
      return b.div(v[0], b.constantLike(v[0], count));
    });
  };
  Value terms = wide == type ? x : l.elementwise(wide, x, [](Body&, ValueRange v) { return v[0]; });
  Value mean = meanOf(terms);
  LoweringBuilder::Read centred[] = {{x, all}, read(mean)};
  Value squares = l.fused(type.getShape(), centred, LoweringBuilder::Write{wide, all},
                          [&](Body& b, ValueRange v) {
                            Value difference = b.sub(v[0], v[1]);
                            return SmallVector<Value>{b.mul(difference, difference)};
                          })[0];
  return {mean, meanOf(squares)};
}

struct Rules {
  static LogicalResult lower(ir::SoftmaxOp op, LoweringBuilder& l) {
    return alongInnermost(op, l, [](Body& b, Value x, int64_t dim) {
      Value e = b.exp(b.sub(x, b.reduce(kernel::ReduceKind::Max, x, dim)));
      return b.mul(e, b.reciprocal(b.reduce(kernel::ReduceKind::Add, e, dim)));
    });
  }

  static LogicalResult lower(ir::LogSoftmaxOp op, LoweringBuilder& l) {
    return alongInnermost(op, l, [](Body& b, Value x, int64_t dim) {
      Value shifted = b.sub(x, b.reduce(kernel::ReduceKind::Max, x, dim));
      return b.sub(shifted,
                   b.create<math::LogOp>(b.reduce(kernel::ReduceKind::Add, b.exp(shifted), dim)));
    });
  }

  static LogicalResult lower(ir::LayerNormOp op, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    NormRows norm(l, type, op.getDims());
    if (!op.getDimsApart().empty())
      return lowerApart(op, norm, l);
    SmallVector<LoweringBuilder::Read> reads = {{op.getOperand(), norm.all}};
    if (op.getScale())
      reads.push_back({op.getScale(), norm.columns});
    if (op.getBias())
      reads.push_back({op.getBias(), norm.columns});
    LoweringBuilder::Write writes[] = {{type, norm.all},
                                       {cast<RankedTensorType>(op.getMean().getType()), norm.rows},
                                       {cast<RankedTensorType>(op.getRstd().getType()), norm.rows}};
    l.replace(l.fused(type.getShape(), reads, writes, [&](Body& b, ValueRange v) {
      Value mean = norm.mean(b, v[0]), centered = b.sub(v[0], mean);
      Value rstd = reciprocalRoot(b, norm.mean(b, b.mul(centered, centered)), op.getEpsilon());
      Value y = b.mul(centered, rstd);
      unsigned next = 1;
      if (op.getScale())
        y = b.mul(y, v[next++]);
      if (op.getBias())
        y = b.add(y, v[next]);
      return SmallVector<Value>{y, mean, rstd};
    }));
    return success();
  }

  /// Statistics of rows whose elements lie apart, then each element.
  static LogicalResult lowerApart(ir::LayerNormOp op, const NormRows& norm, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto statistic = cast<RankedTensorType>(op.getMean().getType());
    const ArrayRef<int64_t> apart = op.getDimsApart();
    const auto left = static_cast<int64_t>(op.getDims().size() - apart.size());
    const auto sum = [&](Value terms) {
      Value sums = buildReduction(l, ir::ReduceKind::Sum, terms, apart);
      const int64_t rank = tensorType(sums).getRank();
      return buildReduction(l, ir::ReduceKind::Sum, sums,
                            llvm::to_vector(llvm::seq(rank - left, rank)));
    };
    LoweringBuilder::Read readMean;
    auto [mean, variance] =
        statisticsApart(l, op.getOperand(), statistic, static_cast<double>(norm.extent), sum,
                        [&](Value of) { return readMean = norm.readRows(l, of, left); });
    Value rstd = l.elementwise(statistic, variance, [&](Body& b, ValueRange v) {
      return reciprocalRoot(b, v[0], op.getEpsilon());
    });
    SmallVector<LoweringBuilder::Read> reads = {
        {op.getOperand(), norm.all}, readMean, norm.readRows(l, rstd, left)};
    for (Value affine : {op.getScale(), op.getBias()})
      if (affine)
        reads.push_back({affine, norm.columns});
    Value result = l.fused(type.getShape(), reads, LoweringBuilder::Write{type, norm.all},
                           [&](Body& b, ValueRange v) {
                             Value y = b.mul(b.sub(v[0], v[1]), v[2]);
                             if (op.getScale())
                               y = b.mul(y, v[3]);
                             return SmallVector<Value>{op.getBias() ? b.add(y, v.back()) : y};
                           })[0];
    l.replace({result, mean, rstd});
    return success();
  }

  /// Statistics, one factor for each channel; then each element.
  static LogicalResult lower(ir::BatchNormOp op, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto statistic = cast<RankedTensorType>(op.getMean().getType());
    const auto rank = static_cast<unsigned>(type.getRank());
    const AffineMap all = l.identity(rank), channel = l.project(rank, op.getDim());
    Value x = op.getOperand();
    auto [mean, variance] = statisticsApart(
        l, x, statistic, static_cast<double>(op.getCount()),
        [&](Value terms) {
          return buildReduction(l, ir::ReduceKind::Sum, terms, op.getReducedDims());
        },
        [&](Value of) { return LoweringBuilder::Read{of, channel}; });
    Value factor = l.elementwise(statistic, {variance, op.getScale()}, [&](Body& b, ValueRange v) {
      return b.mul(reciprocalRoot(b, v[0], op.getEpsilon()), v[1]);
    });
    LoweringBuilder::Read reads[] = {
        {x, all}, {mean, channel}, {factor, channel}, {op.getBias(), channel}};
    Value result = l.fused(type.getShape(), reads, LoweringBuilder::Write{type, all},
                           [](Body& b, ValueRange v) {
                             return SmallVector<Value>{b.add(b.mul(b.sub(v[0], v[1]), v[2]), v[3])};
                           })[0];
    l.replace({result, mean, variance});
    return success();
  }

  static LogicalResult lower(ir::RmsNormOp op, LoweringBuilder& l) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    NormRows norm(l, type, llvm::to_vector(llvm::seq<int64_t>(op.getAxis(), type.getRank())));
    SmallVector<LoweringBuilder::Read> reads = {{op.getOperand(), norm.all}};
    if (op.getScale())
      reads.push_back({op.getScale(), norm.columns});
    LoweringBuilder::Write writes[] = {{type, norm.all},
                                       {cast<RankedTensorType>(op.getRstd().getType()), norm.rows}};
    l.replace(l.fused(type.getShape(), reads, writes, [&](Body& b, ValueRange v) {
      Value x = v[0];
      Value rstd = reciprocalRoot(b, norm.mean(b, b.mul(x, x)), op.getEpsilon());
      Value y = b.mul(x, rstd);
      return SmallVector<Value>{op.getScale() ? b.mul(y, v[1]) : y, rstd};
    }));
    return success();
  }
};

} // namespace

void attachNormalizationRules(MLIRContext* context) {
  attachRules<Rules, ir::SoftmaxOp, ir::LogSoftmaxOp, ir::BatchNormOp, ir::LayerNormOp,
              ir::RmsNormOp>(context);
}

} // namespace titan::lower
