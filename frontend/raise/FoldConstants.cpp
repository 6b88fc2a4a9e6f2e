#include "frontend/raise/Evaluate.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

#include "dialects/Titan/TensorBuilder.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_FOLDCONSTANTS
#include "frontend/raise/Passes.h.inc"

namespace {

/// Does `op` only repeat or number elements? Its operand, or nothing, is the smaller constant.
bool isCompact(Operation* op) { return isa<ir::ConstantOp, ir::BroadcastOp, ir::IotaOp>(op); }

struct FoldConstants : impl::FoldConstantsBase<FoldConstants> {
  using FoldConstantsBase::FoldConstantsBase;

  void runOnOperation() override {
    Evaluator evaluator(largest, Evaluator::Buffers::Unknown);
    Block& body = getOperation().getBody().front();
    for (Operation& op : llvm::make_early_inc_range(body.without_terminator())) {
      if (isCompact(&op) || op.getNumResults() != 1 ||
          !isa<RankedTensorType>(op.getResult(0).getType()))
        continue;
      Value result = op.getResult(0);
      auto elements = evaluator.evaluate(result);
      if (!elements)
        continue;
      OpBuilder builder(&op);
      ir::TensorBuilder b(builder, &op);
      result.replaceAllUsesWith(b.create<ir::ConstantOp>(
          cast<TypedAttr>(toAttribute(*elements, ir::tensorType(result)))));
    }
    foldSplats(body);
    eraseDeadOps(getOperation());
  }

private:
  /// A splat that is repeated is a splat of the wide shape, as the importer writes it.
  static void foldSplats(Block& body) {
    for (auto broadcast : llvm::make_early_inc_range(body.getOps<ir::BroadcastOp>())) {
      auto constant = broadcast.getOperand().getDefiningOp<ir::ConstantOp>();
      auto splat =
          constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
      if (!splat)
        continue;
      OpBuilder builder(broadcast);
      ir::TensorBuilder b(builder, broadcast);
      broadcast.getResult().replaceAllUsesWith(b.create<ir::ConstantOp>(
          cast<TypedAttr>(splat.resizeSplat(cast<ShapedType>(broadcast.getType())))));
    }
  }
};

} // namespace
} // namespace titan::frontend
