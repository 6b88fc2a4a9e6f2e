#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_RAISESOFTMAX
#include "frontend/raise/Passes.h.inc"

namespace {

/// The reduction that `value` repeats along the one dimension that it reduced. A maximum may be
/// detached: softmax is the same whatever is subtracted, and no gradient passes it.
ir::ReduceOp matchReduction(Value value, ir::ReduceKind kind) {
  Value reduced = throughBroadcast(value);
  if (auto detach = reduced.getDefiningOp<ir::DetachOp>(); detach && kind == ir::ReduceKind::Max)
    reduced = throughBroadcast(detach.getOperand());
  auto reduce = reduced.getDefiningOp<ir::ReduceOp>();
  if (!reduce || reduce.getKind() != kind || reduce.getDims().size() != 1 ||
      reduce.getOperand().getType() != value.getType())
    return {};
  // The broadcast puts the reduced dimension back, and nothing else.
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast)
    return {};
  SmallVector<int64_t> kept;
  auto type = ir::tensorType(value);
  for (int64_t d : llvm::seq<int64_t>(0, type.getRank()))
    if (d != reduce.getDims().front())
      kept.push_back(d);
  // Dimensions of extent 1 may be missing: a reshape dropped them.
  SmallVector<int64_t> mapped(broadcast.getDims());
  auto isUnit = [&](int64_t d) { return type.getDimSize(d) == 1; };
  llvm::erase_if(kept, isUnit);
  llvm::erase_if(mapped, isUnit);
  return kept == mapped ? reduce : ir::ReduceOp();
}

/// x of x - max x over `dim`, or null.
Value unshifted(Value value, int64_t dim) {
  auto sub = value.getDefiningOp<ir::SubOp>();
  ir::ReduceOp max = sub ? matchReduction(sub.getRhs(), ir::ReduceKind::Max) : ir::ReduceOp();
  return max && max.getOperand() == sub.getLhs() && max.getDims().front() == dim ? sub.getLhs()
                                                                                 : Value();
}

/// e^(x - max x) / sum of the same; also without the maximum.
struct RaiseQuotient : RaisePattern<ir::DivOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::DivOp op, ir::TensorBuilder& b) const override {
    auto exp = op.getLhs().getDefiningOp<ir::ExpOp>();
    ir::ReduceOp sum = matchReduction(op.getRhs(), ir::ReduceKind::Sum);
    if (!exp || !sum || sum.getOperand() != exp.getResult())
      return {};
    int64_t dim = sum.getDims().front();
    Value shifted = exp.getOperand(), operand = unshifted(shifted, dim);
    return b.create<ir::SoftmaxOp>(operand ? operand : shifted, b.builder.getI64IntegerAttr(dim));
  }
};

/// softmax(x - max x), where a model does what softmax does anyway.
struct DropShift : RaisePattern<ir::SoftmaxOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::SoftmaxOp op, ir::TensorBuilder& b) const override {
    auto dim = static_cast<int64_t>(op.getDim());
    Value operand = unshifted(op.getOperand(), dim);
    return operand ? b.create<ir::SoftmaxOp>(operand, b.builder.getI64IntegerAttr(dim)) : Value();
  }
};

struct RaiseSoftmax : RaisePass<impl::RaiseSoftmaxBase<RaiseSoftmax>, ir::SoftmaxOp> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<RaiseQuotient, DropShift>(set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
