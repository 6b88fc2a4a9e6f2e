// The recurrence routine of kernel.call: its operands and units.
#include "dialects/Kernel/RecurrenceRoutine.h"

using namespace mlir;

namespace titan::kernel {

using ir::RecurrentCell;

FloatType RecurrenceAttr::getAccumulation() const {
  Builder builder(getContext());
  return getElement().isF64() ? FloatType(builder.getF64Type()) : FloatType(builder.getF32Type());
}

int64_t RecurrenceAttr::getPanels() const {
  return llvm::divideCeilSigned(getWidth(), getColumns());
}

SmallVector<int64_t> RecurrenceAttr::getPanelShape() const {
  const int64_t gates = ir::gatesOf(getCell());
  if (getGradient())
    return {getPanels(), gates * getWidth(), getColumns()};
  return {gates, getPanels(), getWidth(), getColumns()};
}

bool RecurrenceAttr::readsOut(unsigned) const { return false; }

int64_t RecurrenceAttr::getUnits() const {
  return llvm::divideCeilSigned(getBatch(), getSamples());
}

RecurrenceOperands operandsOf(RecurrenceAttr recurrence) {
  RecurrenceOperands o;
  unsigned next = 0;
  const auto add = [&](RecurrenceOperands::Number& number, bool isThere = true) {
    if (isThere)
      number = next++;
  };
  const RecurrentCell cell = recurrence.getCell();
  const bool isLstm = cell == RecurrentCell::Lstm, hasGates = isLstm || ir::isGru(cell),
             hasCells = isLstm || cell == RecurrentCell::Gru, isGradient = recurrence.getGradient();
  add(o.projected, !isGradient);
  add(o.panels);
  add(o.h0);
  add(o.c0, isLstm);
  const auto addSteps = [&] {
    add(o.result);
    add(o.gates, hasGates);
    add(o.cells, hasCells);
  };
  if (isGradient) {
    addSteps();
    add(o.dresult);
    add(o.dcells, recurrence.getDcells());
  } else {
    add(o.bias, recurrence.getBias());
  }
  o.ins = next;
  if (isGradient) {
    add(o.projected);
    add(o.dsums, cell == RecurrentCell::Gru);
    add(o.dh0);
    add(o.dc0, isLstm);
  } else {
    addSteps();
  }
  o.outs = next - o.ins;
  return o;
}

LogicalResult RecurrenceAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  for (int64_t extent : {getSteps(), getBatch(), getWidth(), getSamples(), getColumns()})
    if (extent < 1)
      return call.emitOpError("(C3) extents are positive, found ") << extent;
  if (!isa<FloatType>(getElement()))
    return call.emitOpError("(C1) recurs over elements of type ") << getElement();
  if (static_cast<int64_t>(getOrder().size()) != ir::gatesOf(getCell()))
    return call.emitOpError("(C1) has ")
           << ir::gatesOf(getCell()) << " gates, and places for " << getOrder().size();
  if (getGradient() ? getBias() : getDcells())
    return call.emitOpError("(C1) reads a bias forward and the adjoint of cells backward");
  const RecurrenceOperands o = operandsOf(*this);
  if (call.getIns().size() != o.ins || call.getOuts().size() != o.outs ||
      !call.getScalars().empty())
    return call.emitOpError("(C1) takes ")
           << o.ins << " ins and " << o.outs << " outs, found " << call.getIns().size() << " and "
           << call.getOuts().size();
  const int64_t states = getBatch() * getWidth(), steps = getSteps() * states,
                gates = ir::gatesOf(getCell()) * steps;
  Type wide = getAccumulation();
  struct Wanted {
    StringRef name;
    RecurrenceOperands::Number number;
    int64_t elements;
    Type element;
  };
  for (const Wanted& wanted : std::initializer_list<Wanted>{
           {"projected", o.projected, gates, getElement()},
           {"panels", o.panels, ShapedType::getNumElements(getPanelShape()), wide},
           {"h", o.h0, states, wide},
           {"c", o.c0, states, wide},
           {"bias", o.bias, ir::gatesOf(getCell()) * getWidth(), wide},
           {"result", o.result, steps, wide},
           {"gates", o.gates, gates, wide},
           {"cells", o.cells, steps, wide},
           {"dresult", o.dresult, steps, wide},
           {"dcells", o.dcells, steps, wide},
           {"dsums", o.dsums, gates, getElement()},
           {"dh", o.dh0, states, wide},
           {"dc", o.dc0, states, wide}}) {
    if (!wanted.number)
      continue;
    auto type = cast<ShapedType>(call->getOperand(*wanted.number).getType());
    if (type.getElementType() != wanted.element || type.getNumElements() != wanted.elements)
      return call.emitOpError("(C1) takes ") << wanted.elements << " elements " << wanted.element
                                             << " of " << wanted.name << ", found " << type;
  }
  return success();
}

} // namespace titan::kernel
