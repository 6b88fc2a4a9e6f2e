#include "compiler/Support/IndexBound.h"

#include "dialects/Accum/Accum.h"
#include "dialects/Titan/Titan.h"

using namespace mlir;

namespace titan {

int64_t indexBound(Value input) {
  int64_t bound = 0;
  for (OpOperand& use : input.getUses()) {
    Operation* user = use.getOwner();
    int64_t found = 0;
    if (auto loss = dyn_cast<ir::CrossEntropyOp>(user); loss && loss.getTargets() == input)
      found = cast<RankedTensorType>(loss.getLogits().getType()).getShape().back();
    else if (auto lookup = dyn_cast<ir::EmbeddingOp>(user); lookup && lookup.getIndices() == input)
      found = cast<RankedTensorType>(lookup.getTable().getType()).getDimSize(0);
    else if (auto scatter = dyn_cast<ir::ScatterOp>(user); scatter && scatter.getIndices() == input)
      found = cast<RankedTensorType>(scatter.getType()).getDimSize(scatter.getDim());
    else if (auto gather = dyn_cast<ir::GatherOp>(user); gather && gather.getIndices() == input)
      found = cast<RankedTensorType>(gather.getOperand().getType()).getDimSize(gather.getDim());
    else if (auto loop = dyn_cast<accum::LoopOp>(user);
             loop && use.getOperandNumber() < loop.getBatches().size())
      found = indexBound(loop.getSlices()[use.getOperandNumber()]);
    else if (isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReverseOp,
                 ir::ConcatOp, ir::SelectOp>(user))
      found = indexBound(user->getResult(0));
    else if (auto convert = dyn_cast<ir::ConvertOp>(user);
             convert && isa<IntegerType>(getElementTypeOrSelf(convert.getType())))
      found = indexBound(convert);
    bound = std::max(bound, found);
  }
  return bound;
}

} // namespace titan
