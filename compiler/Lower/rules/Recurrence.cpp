// Lowering of titan.recurrence and its gradient: weights in the order in which a step reads them,
// then one routine for all steps.
#include "compiler/Lower/Rules.h"

using namespace mlir;

namespace titan::lower {

namespace {

class Routine {
public:
  Routine(LoweringBuilder& lowering, const ir::RecurrenceShape& recurrence, Type element)
      : l(lowering), shape(recurrence), element(element) {}

  kernel::RecurrenceAttr attribute(bool isGradient, bool hasBias, bool hasDcells) {
    return kernel::RecurrenceAttr::get(l.context, shape.cell, shape.steps, shape.batch, shape.width,
                                       shape.order, shape.reverse, isGradient, hasBias, hasDcells,
                                       element, l.machine.recurrentSamples,
                                       l.machine.recurrentColumns);
  }

  /// The weights [G H, H] in panels, widened to the type of the sums.
  Value panels(kernel::RecurrenceAttr routine, Value weights) {
    const int64_t width = shape.width, columns = routine.getColumns(),
                  padded = routine.getPanels() * columns;
    auto type = RankedTensorType::get(routine.getPanelShape(), routine.getAccumulation());
    if (routine.getGradient()) { // [panel, row, column] of [row, panel columns + column]
      Value source = pad(weights, {shape.rows(), padded});
      AffineExpr column = l.dim(0) * columns + l.dim(2);
      return l.move(type, source, l.map(3, {l.dim(1), column}));
    }
    const int64_t gates = shape.rows() / width;
    Value source = pad(l.castShape(weights, {gates, width, width}), {gates, padded, width});
    AffineExpr column = l.dim(1) * columns + l.dim(3);
    return l.move(type, source, l.map(4, {l.dim(0), column, l.dim(2)}));
  }

  void call(kernel::RecurrenceAttr routine, ValueRange ins) {
    SmallVector<Value> outs;
    for (Value result : l.op->getResults())
      outs.push_back(l.empty(tensorType(result)));
    l.replace(kernel::CallOp::create(l.builder, l.loc, TypeRange(ValueRange(outs)), ins, outs,
                                     ValueRange(), routine, l.path, l.phase)
                  .getResults());
  }

private:
  Value pad(Value value, ArrayRef<int64_t> extents) {
    RankedTensorType type = tensorType(value);
    const SmallVector<int64_t> none(extents.size(), 0);
    return l.pad(type.clone(extents), value, none, none,
                 [&](Body& b) { return b.constant(Body::computeType(type.getElementType()), 0); });
  }

  LoweringBuilder& l;
  ir::RecurrenceShape shape;
  Type element;
};

struct Rules {
  static LogicalResult lower(ir::RecurrenceOp op, LoweringBuilder& l) {
    Routine routine(l, op.getRecurrenceShape(), tensorType(op.getRecurrent()).getElementType());
    kernel::RecurrenceAttr attribute =
        routine.attribute(/*isGradient=*/false, static_cast<bool>(op.getBias()), false);
    SmallVector<Value> ins = {op.getProjected(), routine.panels(attribute, op.getRecurrent())};
    llvm::append_range(ins, op.getInitial());
    if (op.getBias())
      ins.push_back(op.getBias());
    routine.call(attribute, ins);
    return success();
  }

  static LogicalResult lower(ir::RecurrenceGradOp op, LoweringBuilder& l) {
    Routine routine(l, op.getRecurrenceShape(), tensorType(op.getRecurrent()).getElementType());
    kernel::RecurrenceAttr attribute =
        routine.attribute(/*isGradient=*/true, false, static_cast<bool>(op.getDcells()));
    SmallVector<Value> ins = {routine.panels(attribute, op.getRecurrent())};
    llvm::append_range(ins, op.getInitial());
    ins.push_back(op.getResult());
    llvm::append_range(ins, op.getKept());
    ins.push_back(op.getDresult());
    if (op.getDcells())
      ins.push_back(op.getDcells());
    routine.call(attribute, ins);
    return success();
  }
};

} // namespace

void attachRecurrenceRules(MLIRContext* context) {
  attachRules<Rules, ir::RecurrenceOp, ir::RecurrenceGradOp>(context);
}

} // namespace titan::lower
