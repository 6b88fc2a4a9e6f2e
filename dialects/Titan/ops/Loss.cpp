#include "dialects/Titan/ops/OpSupport.h"

using namespace mlir;

namespace titan::ir {

static LogicalResult verifyCrossEntropy(Operation* op, Value logits, Value targets, Value loss,
                                        double smoothing) {
  RankedTensorType type = tensorType(logits);
  if (type.getRank() == 0)
    return op->emitOpError("(C1) logits have no class dimension");
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  if (tensorType(targets).getShape() != rows || tensorType(loss).getShape() != rows ||
      tensorType(loss).getElementType() != accumulationType(type.getElementType()))
    return op->emitOpError("(C1) targets ") << tensorType(targets) << " and loss "
                                            << tensorType(loss) << " do not fit logits " << type;
  if (!(smoothing >= 0 && smoothing <= 1))
    return op->emitOpError("(C2) label_smoothing ") << smoothing << " is outside [0, 1]";
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getLoss(),
                            getLabelSmoothing().convertToDouble());
}

LogicalResult CrossEntropyGradOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getDloss(),
                            getLabelSmoothing().convertToDouble());
}

/// Rows are parallel, the class dimension stays whole.
static ShardingRule crossEntropyRule(Operation* op, Value logits) {
  ShardingRule rule = emptyRule(op);
  ArrayRef<int64_t> shape = tensorType(logits).getShape();
  for (size_t d = 0; d < shape.size(); ++d) {
    bool classes = d + 1 == shape.size();
    int64_t factor = rule.addFactor(shape[d], classes ? FactorKind::Whole : FactorKind::Parallel);
    for (auto* side : {&rule.operands, &rule.results})
      for (ShardingRule::Dims& dims : *side)
        if (d < dims.size())
          dims[d] = {factor};
  }
  return rule;
}

ShardingRule CrossEntropyOp::getShardingRule() { return crossEntropyRule(*this, getLogits()); }
ShardingRule CrossEntropyGradOp::getShardingRule() { return crossEntropyRule(*this, getLogits()); }

} // namespace titan::ir
