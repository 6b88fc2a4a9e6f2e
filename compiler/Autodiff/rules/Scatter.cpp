// Derivatives of scatter and top_k.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

/// What the rules of the kinds share.
class ScatterRule {
public:
  ScatterRule(Builder& b, ScatterOp op)
      : b(b), op(op), x(op.getOperand()), updates(op.getUpdates()), y(op.getResult()),
        dy(b.result()) {}

  /// Of equal indices the last one's update is the element; the others count for nothing.
  void replace() {
    if (b.needs(0))
      b.set(0, scatter(ScatterKind::None, dy, b.splatLike(updates, 0)));
    if (b.needs(2))
      b.set(2, b.select(isLast(), met(dy), b.splatLike(updates, 0)));
  }

  void add() {
    b.set(0, dy);
    if (b.needs(2))
      b.set(2, met(dy));
  }

  /// The product of all other factors. A factor of zero has none beside it only if it is the only
  /// one, so that zeros are counted and left out of the product.
  void multiply() {
    if (b.needs(0))
      b.set(0, b.mul(dy, scatter(ScatterKind::Mul, b.splatLike(x, 1), updates)));
    if (!b.needs(2))
      return;
    Value isZero = b.compare(ComparePredicate::EQ, updates, b.splatLike(updates, 0));
    Value factors = b.select(isZero, b.splatLike(updates, 1), updates);
    Value zero = asNumber(isZero, updates);
    Value zeros = scatter(ScatterKind::Add, b.splatLike(x, 0), zero);
    Value product = scatter(ScatterKind::Mul, x, factors);
    Value others = b.sub(met(zeros), zero);
    Value isOnly = b.compare(ComparePredicate::EQ, others, b.splatLike(others, 0));
    b.set(2, b.select(isOnly, b.div(met(b.mul(dy, product)), factors), b.splatLike(updates, 0)));
  }

  /// max and min: all that are equal to the result share its adjoint.
  void extremum() {
    Value isElement = b.compare(ComparePredicate::EQ, x, y);
    Value isUpdate = b.compare(ComparePredicate::EQ, updates, met(y));
    Value count = scatter(ScatterKind::Add, asNumber(isElement, x), asNumber(isUpdate, updates));
    Value share = b.div(dy, count);
    if (b.needs(0))
      b.set(0, b.select(isElement, share, b.splatLike(x, 0)));
    if (b.needs(2))
      b.set(2, b.select(isUpdate, met(share), b.splatLike(updates, 0)));
  }

private:
  Value scatter(ScatterKind kind, Value operand, Value updates) {
    return b.create<ScatterOp>(kind, operand, op.getIndices(), updates, op.getDim());
  }
  Value asNumber(Value condition, Value like) {
    return b.select(condition, b.splatLike(like, 1), b.splatLike(like, 0));
  }

  /// For each update the element of `tensor`, of the operand's shape, that it meets.
  Value met(Value tensor) {
    return b.create<GatherOp>(tensor, op.getIndices(), static_cast<int64_t>(op.getDim()));
  }

  /// Is an update the last one at its place? The rows are scattered themselves, one for all updates
  /// that share an index.
  Value isLast() {
    RankedTensorType type = tensorType(op.getIndices()).clone(b.builder.getI64Type());
    const auto dim = static_cast<int64_t>(op.getDim());
    Value row = b.create<IotaOp>(type, b.builder.getI64IntegerAttr(dim));
    auto elements = RankedTensorType::get(tensorType(x).getShape().take_front(type.getRank()),
                                          type.getElementType());
    Value last = scatter(ScatterKind::None, b.splat(elements, -1), row);
    Value isLast = b.compare(ComparePredicate::EQ, met(last), row);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    ArrayRef<int64_t> shape = tensorType(updates).getShape();
    return type.getShape() == shape ? isLast : b.broadcast(isLast, shape, dims);
  }

  Builder& b;
  ScatterOp op;
  Value x, updates, y, dy;
};

void scatter(Builder& b, ScatterOp op) {
  ScatterRule rule(b, op);
  switch (op.getKind()) {
  case ScatterKind::None:
    return rule.replace();
  case ScatterKind::Add:
    return rule.add();
  case ScatterKind::Mul:
    return rule.multiply();
  case ScatterKind::Max:
  case ScatterKind::Min:
    return rule.extremum();
  }
}

/// No element is taken twice, so that each adjoint replaces a zero.
void topK(Builder& b, TopKOp op) {
  if (!b.needs(0) || !b.result())
    return;
  const int64_t last = tensorType(op.getOperand()).getRank() - 1;
  b.set(0, b.create<ScatterOp>(ScatterKind::None, b.splatLike(op.getOperand(), 0), op.getIndices(),
                               b.result(), last));
}

} // namespace

void attachScatterRules(MLIRContext* context) {
  attachRule<ScatterOp, scatter>(context);
  attachRule<TopKOp, topK>(context);
}

} // namespace titan::autodiff
