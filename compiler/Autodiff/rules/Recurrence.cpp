// Derivative of titan.recurrence. One op walks the steps backward; what the weights get is then a
// sum over all steps and samples, one product.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

namespace {

using Builder = AdjointBuilder;

enum Operand : unsigned { Projected, Recurrent, FirstInitial };

/// The adjoint of `result`; zeros where no path leads from it to the loss.
Value adjointOr0(Builder& b, OpResult result) {
  Value adjoint = b.result(result.getResultNumber());
  return adjoint ? adjoint : b.splatLike(result, 0);
}

/// `count` columns of the last dimension of `value`, from `first` on.
Value columns(Builder& b, Value value, int64_t first, int64_t count) {
  RankedTensorType type = tensorType(value);
  SmallVector<int64_t> shape(type.getShape()), offsets(shape.size(), 0), ones(shape.size(), 1);
  shape.back() = count;
  offsets.back() = first;
  return b.create<SliceOp>(type.clone(shape), value, offsets, ones);
}

/// The state that each step starts from, [T, B, H].
Value statesBefore(Builder& b, RecurrenceOp op) {
  RecurrenceShape shape = op.getRecurrenceShape();
  Value first = b.reshape(op.getInitial().front(), {1, shape.batch, shape.width});
  if (shape.steps == 1)
    return first;
  RankedTensorType type =
      tensorType(op.getResult()).clone({shape.steps - 1, shape.batch, shape.width});
  const int64_t offsets[] = {shape.reverse ? 1 : 0, 0, 0}, ones[] = {1, 1, 1};
  Value others = b.create<SliceOp>(type, op.getResult(), ArrayRef(offsets), ArrayRef(ones));
  SmallVector<Value> parts = {first, others};
  if (shape.reverse)
    std::swap(parts[0], parts[1]);
  return b.create<ConcatOp>(parts, int64_t(0));
}

/// sums^T states over all steps and samples, in the type of the weights.
Value weightAdjoint(Builder& b, Value sums, Value states) {
  Type element = tensorType(sums).getElementType();
  const int64_t stepsAndSamples[] = {0, 1};
  Value product = b.create<ContractOp>(sums, b.convert(states, element), Value(),
                                       ArrayRef<int64_t>(), ArrayRef<int64_t>(),
                                       ArrayRef(stepsAndSamples), ArrayRef(stepsAndSamples));
  return b.convert(product, element);
}

/// The adjoint of the recurrent weights from that of the sums.
Value recurrentAdjoint(Builder& b, RecurrenceOp op, Value sums) {
  Value before = statesBefore(b, op);
  if (op.getCell() != RecurrentCell::GruResetBefore)
    return weightAdjoint(b, sums, before);
  // What the rows of n, the last ones, are multiplied with is r h.
  const int64_t width = op.getRecurrenceShape().width;
  Value reset = columns(b, op.getKept().front(), op.getOrder()[gate::reset] * width, width);
  Value parts[] = {weightAdjoint(b, columns(b, sums, 0, 2 * width), before),
                   weightAdjoint(b, columns(b, sums, 2 * width, width), b.mul(reset, before))};
  return b.create<ConcatOp>(ValueRange(parts), int64_t(0));
}

LogicalResult recurrence(Builder& b, RecurrenceOp op) {
  const bool isLstm = op.getCell() == RecurrentCell::Lstm;
  for (OpResult kept : op->getResults().drop_front())
    if (b.result(kept.getResultNumber()) && !(isLstm && kept == op.getKept().back()))
      return op.emitError()
             << "the gates of a recurrent layer are on the path to the loss, module path "
             << pathString(op) << ": they have no derivative";
  Value dcells = isLstm ? b.result(op->getNumResults() - 1) : Value();
  auto gradient = b.create<RecurrenceGradOp>(op, adjointOr0(b, op->getResult(0)), dcells);
  Value sums = gradient.getDsums() ? gradient.getDsums() : gradient.getDprojected();
  if (b.needs(Projected))
    b.set(Projected, gradient.getDprojected());
  if (b.needs(Recurrent))
    b.set(Recurrent, recurrentAdjoint(b, op, sums));
  unsigned operand = FirstInitial;
  for (Value dinitial : gradient.getDinitial()) {
    if (b.needs(operand))
      b.set(operand, dinitial);
    ++operand;
  }
  if (op.getBias() && b.needs(operand))
    b.set(operand, b.reduce(ReduceKind::Sum,
                            b.convert(sums, tensorType(op.getBias()).getElementType()), {0, 1}));
  return success();
}

} // namespace

void attachRecurrenceRules(MLIRContext* context) { attachRule<RecurrenceOp, recurrence>(context); }

} // namespace titan::autodiff
