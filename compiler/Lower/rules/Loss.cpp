// Lowering of the losses. The target's class is found by comparing coordinates, not by a gather:
// the row is swept anyway.
#include "compiler/Lower/Rules.h"

using namespace mlir;
using arith::CmpIPredicate;

namespace titan::lower {

namespace {

/// One row of logits: x - max, its exponential and the sum of these.
struct Row {
  Value shifted, exponential, sum;
};

Row exponentials(Body& b, Value logits, int64_t dim) {
  Value shifted = b.sub(logits, b.reduce(kernel::ReduceKind::Max, logits, dim));
  Value exponential = b.exp(shifted);
  return {shifted, exponential, b.reduce(kernel::ReduceKind::Add, exponential, dim)};
}

/// Compares in i64, so that any label type meets any `ignore_index`.
struct Target {
  Value isClass, isIgnored;
};

Target compareTarget(Body& b, Value target, bool isUnsigned, int64_t ignoreIndex, int64_t dim) {
  Type i64 = b.builder.getI64Type();
  Value label = b.resize(target, i64, isUnsigned);
  Value index = b.create<arith::IndexCastOp>(i64, b.index(dim));
  return {b.compare(CmpIPredicate::eq, index, label),
          b.compare(CmpIPredicate::eq, label, b.integer(i64, ignoreIndex))};
}

template <typename Op> bool hasUnsignedTargets(Op op) {
  return tensorType(op.getTargets()).getElementType().isUnsignedInteger();
}

struct Rules {
  static LogicalResult lower(ir::CrossEntropyOp op, LoweringBuilder& l) {
    auto shape = tensorType(op.getLogits()).getShape();
    int64_t rank = shape.size(), dim = rank - 1;
    double smoothing = op.getLabelSmoothing().convertToDouble();
    AffineMap rows = l.project(rank, llvm::to_vector(llvm::seq<int64_t>(0, dim)));
    auto type = cast<RankedTensorType>(op.getLoss().getType());
    LoweringBuilder::Read reads[] = {{op.getLogits(), l.identity(rank)}, {op.getTargets(), rows}};
    l.replace(l.fused(shape, reads, LoweringBuilder::Write{type, rows}, [&](Body& b, ValueRange v) {
      Row row = exponentials(b, v[0], dim);
      Target target = compareTarget(b, v[1], hasUnsignedTargets(op), op.getIgnoreIndex(), dim);
      Value zero = b.constantLike(v[0], 0);
      Value logSum = b.create<math::LogOp>(row.sum);
      Value picked =
          b.reduce(kernel::ReduceKind::Add, b.select(target.isClass, row.shifted, zero), dim);
      Value loss = b.sub(logSum, picked);
      if (smoothing != 0) {
        Value classes = b.constantLike(v[0], shape[dim]);
        Value all =
            b.sub(b.mul(classes, logSum), b.reduce(kernel::ReduceKind::Add, row.shifted, dim));
        loss = b.add(b.mul(b.constantLike(loss, 1 - smoothing), loss),
                     b.mul(b.constantLike(loss, smoothing / shape[dim]), all));
      }
      return SmallVector<Value>{b.select(target.isIgnored, zero, loss)};
    }));
    return success();
  }

  static LogicalResult lower(ir::CrossEntropyGradOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    auto shape = type.getShape();
    int64_t rank = shape.size(), dim = rank - 1;
    double smoothing = op.getLabelSmoothing().convertToDouble();
    AffineMap rows = l.project(rank, llvm::to_vector(llvm::seq<int64_t>(0, dim)));
    LoweringBuilder::Read reads[] = {
        {op.getLogits(), l.identity(rank)}, {op.getTargets(), rows}, {op.getDloss(), rows}};
    l.replace(l.fused(
        shape, reads, LoweringBuilder::Write{type, l.identity(rank)}, [&](Body& b, ValueRange v) {
          Row row = exponentials(b, v[0], dim);
          Target target = compareTarget(b, v[1], hasUnsignedTargets(op), op.getIgnoreIndex(), dim);
          Value probability = b.mul(row.exponential, b.reciprocal(row.sum));
          Value distribution = b.select(
              target.isClass, b.constantLike(probability, 1 - smoothing + smoothing / shape[dim]),
              b.constantLike(probability, smoothing / shape[dim]));
          Value gradient = b.mul(v[2], b.sub(probability, distribution));
          return SmallVector<Value>{
              b.select(target.isIgnored, b.constantLike(gradient, 0), gradient)};
        }));
    return success();
  }

  static LogicalResult lower(ir::BceWithLogitsOp op, LoweringBuilder& l) {
    l.replace(l.elementwise(op.getType(), op->getOperands(), [](Body& b, ValueRange v) {
      Value x = v[0], t = v[1];
      Value linear = b.sub(b.maximum(x, b.constantLike(x, 0)), b.mul(x, t));
      return b.add(linear, b.log1p(b.exp(b.neg(b.abs(x)))));
    }));
    return success();
  }
};

} // namespace

void attachLossRules(MLIRContext* context) {
  attachRules<Rules, ir::CrossEntropyOp, ir::CrossEntropyGradOp, ir::BceWithLogitsOp>(context);
}

} // namespace titan::lower
