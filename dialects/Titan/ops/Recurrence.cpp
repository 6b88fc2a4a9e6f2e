#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

int64_t gatesOf(RecurrentCell cell) {
  switch (cell) {
  case RecurrentCell::Lstm:
    return 4;
  case RecurrentCell::Gru:
  case RecurrentCell::GruResetBefore:
    return 3;
  case RecurrentCell::Tanh:
  case RecurrentCell::Relu:
    return 1;
  }
  llvm_unreachable("a cell");
}

unsigned statesOf(RecurrentCell cell) { return cell == RecurrentCell::Lstm ? 2 : 1; }

bool isGru(RecurrentCell cell) {
  return cell == RecurrentCell::Gru || cell == RecurrentCell::GruResetBefore;
}

namespace {

/// [T, B, H] of the states of all steps, in the accumulation type.
RankedTensorType stepsType(const RecurrenceShape& shape, Type element) {
  return RankedTensorType::get({shape.steps, shape.batch, shape.width}, accumulationType(element));
}

SmallVector<Type> keptTypes(const RecurrenceShape& shape, Type element) {
  RankedTensorType steps = stepsType(shape, element);
  Type gates = steps.clone({shape.steps, shape.batch, shape.rows()});
  switch (shape.cell) {
  case RecurrentCell::Lstm:
  case RecurrentCell::Gru:
    return {gates, steps};
  case RecurrentCell::GruResetBefore:
    return {gates};
  case RecurrentCell::Tanh:
  case RecurrentCell::Relu:
    return {};
  }
  llvm_unreachable("a cell");
}

SmallVector<Type> stateTypes(const RecurrenceShape& shape, Type element) {
  return SmallVector<Type>(statesOf(shape.cell),
                           stepsType(shape, element).clone({shape.batch, shape.width}));
}

/// (C2) of both ops.
LogicalResult verifyOrder(Operation* op, const RecurrenceShape& shape) {
  const int64_t gates = gatesOf(shape.cell);
  if (static_cast<int64_t>(shape.order.size()) != gates || !isPermutation(shape.order, gates))
    return op->emitOpError("(C2) ")
           << gates << " row blocks are not in the order [" << shape.order << "]";
  if (isGru(shape.cell) && shape.order[gate::candidate] != gate::candidate)
    return op->emitOpError("(C2) the rows of n are not the last ones: order [")
           << shape.order << "]";
  return success();
}

LogicalResult verifyRecurrent(Operation* op, RankedTensorType recurrent, RankedTensorType steps,
                              RecurrentCell cell) {
  if (steps.getRank() == 3 && recurrent.getRank() == 2 && steps.getNumElements() > 0 &&
      recurrent.getNumElements() > 0 &&
      recurrent.getDimSize(0) == gatesOf(cell) * recurrent.getDimSize(1))
    return success();
  return op->emitOpError("(C1) takes [T, B, ...] and weights of ")
         << gatesOf(cell) << " row blocks, found " << steps << " and " << recurrent;
}

LogicalResult verifyTypes(Operation* op, StringRef label, StringRef name, TypeRange found,
                          TypeRange wanted) {
  if (found == wanted)
    return success();
  InFlightDiagnostic error = op->emitOpError() << label << ' ' << name << " is ";
  llvm::interleaveComma(wanted, error);
  error << ", found ";
  llvm::interleaveComma(found, error);
  return error;
}

/// Dimension 1 of [T, B, ...] and dimension 0 of [B, H] are the batch; all others are whole.
ShardingRule ruleOf(Operation* op, int64_t batch) {
  ShardingRule rule = emptyRule(op);
  const int64_t factor = rule.addFactor(batch, FactorKind::Parallel);
  const auto set = [&](ShardingRule::Dims& dims, Value value, std::optional<size_t> batchDim) {
    for (auto [d, extent] : llvm::enumerate(tensorType(value).getShape()))
      dims[d] = {d == batchDim ? factor : rule.addFactor(extent, FactorKind::Whole)};
  };
  const auto batchDimOf = [](Value value) -> std::optional<size_t> {
    return tensorType(value).getRank() == 3 ? 1 : 0;
  };
  for (auto [dims, operand] : llvm::zip_equal(rule.operands, op->getOperands())) {
    const bool isWeight =
        llvm::TypeSwitch<Operation*, bool>(op)
            .Case([&](RecurrenceOp forward) {
              return operand == forward.getRecurrent() || operand == forward.getBias();
            })
            .Case([&](RecurrenceGradOp gradient) { return operand == gradient.getRecurrent(); });
    set(dims, operand, isWeight ? std::nullopt : batchDimOf(operand));
  }
  for (auto [dims, result] : llvm::zip_equal(rule.results, op->getResults()))
    set(dims, result, batchDimOf(result));
  return rule;
}

} // namespace

RecurrenceShape RecurrenceOp::getRecurrenceShape() {
  ArrayRef<int64_t> projected = tensorType(getProjected()).getShape();
  return {getCell(),  projected[0], projected[1], tensorType(getRecurrent()).getDimSize(1),
          getOrder(), getReverse()};
}

RecurrenceShape RecurrenceGradOp::getRecurrenceShape() {
  ArrayRef<int64_t> result = tensorType(getResult()).getShape();
  return {getCell(), result[0], result[1], result[2], getOrder(), getReverse()};
}

LogicalResult RecurrenceOp::verify() {
  RankedTensorType projected = tensorType(getProjected()), recurrent = tensorType(getRecurrent());
  if (failed(verifyRecurrent(*this, recurrent, projected, getCell())))
    return failure();
  if (projected.getElementType() != recurrent.getElementType() ||
      projected.getDimSize(2) != recurrent.getDimSize(0))
    return emitOpError("(C1) ") << recurrent << " does not belong to " << projected;
  RecurrenceShape shape = getRecurrenceShape();
  if (failed(verifyOrder(*this, shape)))
    return failure();
  Type element = recurrent.getElementType();
  RankedTensorType steps = stepsType(shape, element);
  if (failed(verifyTypes(*this, "(C3)", "initial", getInitial().getTypes(),
                         stateTypes(shape, element))))
    return failure();
  if (getBias() && failed(verifyTypes(*this, "(C3)", "bias", getBias().getType(),
                                      TypeRange(Type(steps.clone({shape.rows()}))))))
    return failure();
  if (failed(verifyTypes(*this, "(C4)", "result", getResult().getType(), TypeRange(Type(steps)))))
    return failure();
  return verifyTypes(*this, "(C4)", "kept", getKept().getTypes(), keptTypes(shape, element));
}

LogicalResult RecurrenceGradOp::verify() {
  RankedTensorType recurrent = tensorType(getRecurrent());
  if (failed(verifyRecurrent(*this, recurrent, tensorType(getResult()), getCell())))
    return failure();
  RecurrenceShape shape = getRecurrenceShape();
  if (failed(verifyOrder(*this, shape)))
    return failure();
  Type element = recurrent.getElementType();
  RankedTensorType steps = stepsType(shape, element);
  const auto check = [&](StringRef label, StringRef name, TypeRange found, TypeRange wanted) {
    return verifyTypes(*this, label, name, found, wanted);
  };
  if (failed(check("(C3)", "result", getResult().getType(), TypeRange(Type(steps)))) ||
      failed(check("(C3)", "initial", getInitial().getTypes(), stateTypes(shape, element))) ||
      failed(check("(C3)", "kept", getKept().getTypes(), keptTypes(shape, element))) ||
      failed(check("(C3)", "dresult", getDresult().getType(), TypeRange(Type(steps)))))
    return failure();
  if (getDcells() && getCell() != RecurrentCell::Lstm)
    return emitOpError("(C3) has no cells");
  if (getDcells() && failed(check("(C3)", "dcells", getDcells().getType(), TypeRange(Type(steps)))))
    return failure();
  auto sums = RankedTensorType::get({shape.steps, shape.batch, shape.rows()}, element);
  if (failed(check("(C4)", "dprojected", getDprojected().getType(), TypeRange(Type(sums)))))
    return failure();
  const size_t others = statesOf(getCell()) + (getCell() == RecurrentCell::Gru ? 1 : 0);
  if (getDsumsAndDinitial().size() != others)
    return emitOpError("(C4) has ")
           << others << " results behind dprojected, found " << getDsumsAndDinitial().size();
  if (getDsums() && failed(check("(C4)", "dsums", getDsums().getType(), TypeRange(Type(sums)))))
    return failure();
  return check("(C4)", "dinitial", getDinitial().getTypes(), stateTypes(shape, element));
}

void RecurrenceOp::build(OpBuilder& builder, OperationState& state, RecurrentCell cell,
                         Value projected, Value recurrent, ValueRange initial, Value bias,
                         ArrayRef<int64_t> order, bool reverse, ArrayAttr path, PhaseAttr phase) {
  ArrayRef<int64_t> extents = tensorType(projected).getShape();
  RecurrenceShape shape = {cell,  extents[0], extents[1], tensorType(recurrent).getDimSize(1),
                           order, reverse};
  Type element = tensorType(recurrent).getElementType();
  build(builder, state, stepsType(shape, element), keptTypes(shape, element), cell, projected,
        recurrent, initial, bias, order, reverse, path, phase);
}

void RecurrenceGradOp::build(OpBuilder& builder, OperationState& state, RecurrenceOp forward,
                             Value dresult, Value dcells, ArrayAttr path, PhaseAttr phase) {
  RecurrenceShape shape = forward.getRecurrenceShape();
  Type sums = tensorType(forward.getProjected());
  SmallVector<Type> others;
  if (shape.cell == RecurrentCell::Gru)
    others.push_back(sums);
  llvm::append_range(others, forward.getInitial().getTypes());
  build(builder, state, sums, others, shape.cell, forward.getRecurrent(), forward.getInitial(),
        forward.getResult(), forward.getKept(), dresult, dcells, shape.order, shape.reverse, path,
        phase);
}

Value RecurrenceGradOp::getDsums() {
  return getCell() == RecurrentCell::Gru ? getDsumsAndDinitial().front() : Value();
}

ResultRange RecurrenceGradOp::getDinitial() {
  return getDsumsAndDinitial().take_back(statesOf(getCell()));
}

SmallVector<unsigned> RecurrenceOp::getNarrowOperands() { return {0, 1}; }
SmallVector<unsigned> RecurrenceGradOp::getNarrowOperands() { return {0}; }

ResultRounding RecurrenceOp::getResultRounding(unsigned) { return ResultRounding::None; }
ResultRounding RecurrenceGradOp::getResultRounding(unsigned result) {
  const bool isSum = result < getNumResults() - getDinitial().size();
  return isSum ? ResultRounding::Narrow : ResultRounding::None;
}

ShardingRule RecurrenceOp::getShardingRule() { return ruleOf(*this, getRecurrenceShape().batch); }
ShardingRule RecurrenceGradOp::getShardingRule() {
  return ruleOf(*this, getRecurrenceShape().batch);
}

} // namespace titan::ir
