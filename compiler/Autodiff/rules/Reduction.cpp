// Derivatives of the reductions.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// The extreme elements share the adjoint in equal parts.
Value extremum(Builder& b, ReduceOp op, Value dy) {
  Value x = op.getOperand();
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  Value chosen =
      b.compare(ComparePredicate::EQ, x, b.unreduce(op.getResult(), shape, op.getDims()));
  Value ones = b.convert(chosen, tensorType(x).getElementType());
  Value share = b.div(dy, b.reduce(ReduceKind::Sum, ones, op.getDims()));
  return b.select(chosen, b.unreduce(share, shape, op.getDims()), b.splatLike(x, 0));
}

/// `x` [rows, n] moved by `distance` along the second dimension (to the right if positive); ones
/// come in.
Value shifted(Builder& b, Value x, int64_t distance) {
  RankedTensorType type = tensorType(x);
  int64_t n = type.getDimSize(1), kept = n - std::abs(distance);
  int64_t from = distance > 0 ? 0 : -distance, to = distance > 0 ? distance : 0;
  Value part = b.create<SliceOp>(type.clone({type.getDimSize(0), kept}), x,
                                 ArrayRef<int64_t>{0, from}, ArrayRef<int64_t>{1, 1});
  return b.create<PadOp>(type, part, ArrayRef<int64_t>{0, to}, ArrayRef<int64_t>{0, 0},
                         APFloat(1.0));
}

/// Products of all elements before each one (`direction` 1) or after it (-1), by doubling
/// distances.
Value exclusiveProducts(Builder& b, Value x, int64_t direction) {
  int64_t n = tensorType(x).getDimSize(1);
  if (n == 1)
    return b.splatLike(x, 1);
  Value products = shifted(b, x, direction);
  for (int64_t distance = 1; distance < n; distance *= 2)
    products = b.mul(products, shifted(b, products, direction * distance));
  return products;
}

/// The product of the other elements, without division: zeros are no special case.
Value product(Builder& b, ReduceOp op, Value dy) {
  Value x = op.getOperand();
  RankedTensorType type = tensorType(x);
  SmallVector<int64_t> order, inverse(type.getRank());
  int64_t rows = 1, n = 1;
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (!llvm::is_contained(op.getDims(), d)) {
      order.push_back(d);
      rows *= type.getDimSize(d);
    }
  for (int64_t d : op.getDims()) {
    order.push_back(d);
    n *= type.getDimSize(d);
  }
  for (auto [i, d] : llvm::enumerate(order))
    inverse[d] = static_cast<int64_t>(i);
  Value moved = b.transpose(x, order);
  Value matrix = b.reshape(moved, {rows, n});
  Value others = b.mul(exclusiveProducts(b, matrix, 1), exclusiveProducts(b, matrix, -1));
  Value back = b.transpose(b.reshape(others, tensorType(moved).getShape()), inverse);
  return b.mul(b.unreduce(dy, type.getShape(), op.getDims()), back);
}

Value reduce(Builder& b, ReduceOp op, Value dy) {
  switch (op.getKind()) {
  case ReduceKind::Sum:
    return b.unreduce(dy, tensorType(op.getOperand()).getShape(), op.getDims());
  case ReduceKind::Max:
  case ReduceKind::Min:
    return extremum(b, op, dy);
  case ReduceKind::Prod:
    return product(b, op, dy);
  }
  return {};
}

} // namespace

void attachReductionRules(MLIRContext* context) { attachUnaryRule<ReduceOp, reduce>(context); }

} // namespace titan::autodiff
