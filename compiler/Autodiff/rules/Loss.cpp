// Derivatives of the losses.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

void attachLossRules(MLIRContext* context) {
  attachRule<CrossEntropyOp, [](AdjointBuilder& b, CrossEntropyOp op) {
    if (b.needs(0))
      b.set(0, b.create<CrossEntropyGradOp>(op.getLogits().getType(), op.getLogits(),
                                            op.getTargets(), b.result(), op.getIgnoreIndexAttr(),
                                            op.getLabelSmoothingAttr()));
  }>(context);
  attachRule<BceWithLogitsOp, [](AdjointBuilder& b, BceWithLogitsOp op) {
    Value x = op.getLogits(), dy = b.result();
    if (b.needs(0))
      b.set(0, b.mul(dy, b.sub(b.create<SigmoidOp>(x), op.getTargets())));
    if (b.needs(1))
      b.set(1, b.neg(b.mul(dy, x)));
  }>(context);
}

} // namespace titan::autodiff
