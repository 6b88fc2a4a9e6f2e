#include "frontend/raise/AttentionMask.h"
#include "frontend/raise/AttentionRaiser.h"
#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

#include "mlir/IR/Remarks.h"

#include <limits>

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISEATTENTION
#include "frontend/raise/Passes.h.inc"

namespace {

/// Without heads that are repeated for groups of queries, and with a mask that is known as
/// `causal`: what the patterns do, for attention that the model file has as one op.
void simplify(ir::AttentionOp op, Evaluator& evaluator) {
  OpBuilder builder(op);
  ir::TensorBuilder b(builder, op);
  View key{op.getKey(), {kBatch, kKey, kHead, kWidth}};
  View value{op.getValue(), {kBatch, kKey, kHead, kWidth}};
  View oneKey = withoutRepetition(key, kHead), oneValue = withoutRepetition(value, kHead);
  if (oneKey.extent(kHead) == oneValue.extent(kHead) && oneKey.extent(kHead) < key.extent(kHead)) {
    op.getKeyMutable().assign(arranged(b, oneKey, {kBatch, kKey, kHead, kWidth}));
    op.getValueMutable().assign(arranged(b, oneValue, {kBatch, kKey, kHead, kWidth}));
  }
  bool isFree = llvm::all_of(op->getResults().drop_front(), [](Value v) { return v.use_empty(); });
  if (!op.getMask() || op.getFill() || !isFree)
    return;
  Type type = ir::tensorType(op.getLogSumExp()).getElementType();
  bool isBoolean = ir::tensorType(op.getMask()).getElementType().isInteger(1);
  MaskTerm term{isBoolean ? MaskTerm::Kind::Fill : MaskTerm::Kind::Add,
                {op.getMask(), {kBatch, kHead, kQuery, kKey}},
                1,
                true,
                -std::numeric_limits<double>::infinity()};
  AttentionMask mask =
      buildMask(b, term, ir::tensorType(op.getQuery()).getDimSize(1),
                ir::tensorType(op.getKey()).getDimSize(1), op.getCausal(), type, evaluator);
  auto simple =
      b.create<ir::AttentionOp>(op.getQuery(), op.getKey(), op.getValue(), mask.operand,
                                op.getScale().convertToDouble(), mask.causal, FloatAttr());
  simple.setPAttr(op.getPAttr());
  simple.setStreamAttr(op.getStreamAttr());
  op.getResult().replaceAllUsesWith(simple.getResult());
  op.erase();
}

struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  using RaiseAttentionBase::RaiseAttentionBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Evaluator evaluator(largestMask, Evaluator::Buffers::AsInFile);
    for (ir::AttentionOp op : llvm::to_vector(function.getOps<ir::AttentionOp>()))
      simplify(op, evaluator);
    auto softmaxes = llvm::to_vector(function.getOps<ir::SoftmaxOp>());
    for (ir::SoftmaxOp softmax : softmaxes) {
      RaisedAttention raised = raiseAttention(softmax, evaluator);
      if (raised.attention) {
        remarkRaised(raised.attention);
        if (!raised.whyNotCausal.empty())
          remark::missed(raised.attention.getLoc(),
                         remark::RemarkOpts::name("raise-causal").category("import"))
              << remark::reason("{0}", raised.whyNotCausal)
              << remark::add("the causal mask of '{0}' stays an operand",
                             ir::describePlace(raised.attention));
        if (!raised.whyAdded.empty())
          remark::missed(raised.attention.getLoc(),
                         remark::RemarkOpts::name("raise-fill").category("import"))
              << remark::reason("{0}", raised.whyAdded)
              << remark::add("a query of '{0}' whose keys are all masked has a gradient through "
                             "scores that were replaced",
                             ir::describePlace(raised.attention));
      } else if (!raised.problem.empty()) {
        remarkNotRaised(softmax, "titan.attention", raised.problem);
      }
    }
    eraseDeadOps(function);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, kInitialValue);
  }
};

} // namespace
} // namespace titan::frontend
