// Derivative of dropout: the same dropout. Its decisions are a function of counters, so no mask is
// kept.
#include "compiler/Autodiff/Rules.h"

using namespace mlir;
using namespace titan::ir;

namespace titan::autodiff {

void attachRandomRules(MLIRContext* context) {
  attachRule<DropoutOp, [](AdjointBuilder& b, DropoutOp op) {
    if (b.needs(0))
      b.set(0, b.create<DropoutOp>(op.getType(), b.result(), op.getSeed(), op.getStep(),
                                   op.getBase(), op.getPAttr(), op.getStreamAttr(),
                                   op.getSharedAttr(), op.getWindowAttr()));
  }>(context);
}

} // namespace titan::autodiff
