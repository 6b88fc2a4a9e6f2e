// Lowering of softmax and layer normalisation: kernels over whole rows.
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

struct Rules {
  static LogicalResult lower(ir::SoftmaxOp op, LoweringBuilder& l) {
    return alongInnermost(op, l, [](Body& b, Value x, int64_t dim) {
      Value e = b.exp(b.sub(x, b.reduce(kernel::ReduceKind::Max, x, dim)));
      return b.div(e, b.reduce(kernel::ReduceKind::Add, e, dim));
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
    int64_t rank = type.getRank(), axis = op.getAxis();
    auto outer = llvm::to_vector(llvm::seq<int64_t>(0, axis)),
         inner = llvm::to_vector(llvm::seq<int64_t>(axis, rank));
    AffineMap all = l.identity(rank), rows = l.project(rank, outer),
              columns = l.project(rank, inner);
    int64_t extent = 1;
    for (int64_t d : inner)
      extent *= type.getDimSize(d);

    SmallVector<LoweringBuilder::Read> reads = {{op.getOperand(), all}};
    if (op.getScale())
      reads.push_back({op.getScale(), columns});
    if (op.getBias())
      reads.push_back({op.getBias(), columns});
    LoweringBuilder::Write writes[] = {{type, all},
                                       {cast<RankedTensorType>(op.getMean().getType()), rows},
                                       {cast<RankedTensorType>(op.getRstd().getType()), rows}};
    l.replace(l.fused(type.getShape(), reads, writes, [&](Body& b, ValueRange v) {
      Value x = v[0], count = b.constantLike(x, extent);
      Value mean = b.div(b.reduce(kernel::ReduceKind::Add, x, inner), count);
      Value centered = b.sub(x, mean);
      Value variance =
          b.div(b.reduce(kernel::ReduceKind::Add, b.mul(centered, centered), inner), count);
      Value shifted = b.add(variance, b.constantLike(x, op.getEpsilon().convertToDouble()));
      Value rstd = b.div(b.constantLike(x, 1), b.sqrt(shifted));
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
};

} // namespace

void attachNormalizationRules(MLIRContext* context) {
  attachRules<Rules, ir::SoftmaxOp, ir::LogSoftmaxOp, ir::LayerNormOp>(context);
}

} // namespace titan::lower
