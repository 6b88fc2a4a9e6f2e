#include "frontend/raise/Layout.h"
#include "frontend/raise/Matching.h"
#include "frontend/raise/Passes.h"
#include "frontend/raise/RaisePass.h"

using namespace mlir;

namespace titan::frontend {

#define GEN_PASS_DEF_FOLDTRANSPOSES
#include "frontend/raise/Passes.h.inc"

namespace {

/// Does `permutation` of `shape` move dimensions of extent 1 only?
bool keepsOrder(ArrayRef<int64_t> permutation, ArrayRef<int64_t> shape) {
  int64_t last = -1;
  for (int64_t d : permutation) {
    if (shape[d] == 1)
      continue;
    if (d < last)
      return false;
    last = d;
  }
  return true;
}

struct ComposeTransposes : RaisePattern<ir::TransposeOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::TransposeOp op, ir::TensorBuilder& b) const override {
    Value operand = op.getOperand();
    if (isIdentity(op.getPermutation()))
      return operand;
    if (operand.getDefiningOp<ir::TransposeOp>() || operand.getDefiningOp<ir::BroadcastOp>())
      return transposed(b, operand, op.getPermutation());
    ArrayRef<int64_t> shape = ir::tensorType(operand).getShape();
    if (keepsOrder(op.getPermutation(), shape))
      return reshaped(b, operand, ir::tensorType(op.getResult()).getShape());
    // Dimensions of extent 1 that a reshape added below are put where they belong by one above.
    if (!operand.getDefiningOp<ir::ReshapeOp>() || !llvm::is_contained(shape, 1))
      return {};
    SmallVector<int64_t> kept, permutation;
    for (auto [d, extent] : llvm::enumerate(shape))
      if (extent != 1)
        kept.push_back(static_cast<int64_t>(d));
    for (int64_t d : op.getPermutation())
      if (shape[d] != 1)
        permutation.push_back(llvm::find(kept, d) - kept.begin());
    SmallVector<int64_t> squeezed = llvm::map_to_vector(kept, [&](int64_t d) { return shape[d]; });
    return reshaped(b, transposed(b, reshaped(b, operand, squeezed), permutation),
                    ir::tensorType(op.getResult()).getShape());
  }
};

/// f(transpose(x), splat) becomes transpose(f(x, splat)): scales, signs and casts stand beside what
/// made x.
struct SinkThroughElementwise : RewritePattern {
  explicit SinkThroughElementwise(MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    if (!isElementwise(op))
      return failure();
    ir::TransposeOp transpose;
    for (Value operand : op->getOperands()) {
      if (operand.getDefiningOp<ir::TransposeOp>() && !transpose)
        transpose = operand.getDefiningOp<ir::TransposeOp>();
      else if (!splatOf(operand))
        return failure();
    }
    if (!transpose)
      return failure();
    ir::TensorBuilder b(rewriter, op);
    SmallVector<int64_t> back = inverse(transpose.getPermutation());
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(transposed(b, operand, back));
    Value result = cloneElementwise(rewriter, op, operands);
    rewriter.replaceOp(op, b.transpose(result, transpose.getPermutation()));
    return success();
  }
};

/// A contraction names its dimensions: it needs no transposed operand, as long as the free
/// dimensions keep their order.
struct AbsorbIntoContract : RaisePattern<ir::ContractOp> {
  using RaisePattern::RaisePattern;

  Value raise(ir::ContractOp op, ir::TensorBuilder& b) const override {
    if (op.getAcc())
      return {};
    SmallVector<int64_t> lhsBatch(op.getLhsBatch()), rhsBatch(op.getRhsBatch());
    SmallVector<int64_t> lhsContracting(op.getLhsContracting());
    SmallVector<int64_t> rhsContracting(op.getRhsContracting());
    Value lhs = absorb(op.getLhs(), op.getLhsFree(), lhsBatch, lhsContracting);
    Value rhs = absorb(op.getRhs(), op.getRhsFree(), rhsBatch, rhsContracting);
    if (lhs == op.getLhs() && rhs == op.getRhs())
      return {};
    return b.create<ir::ContractOp>(lhs, rhs, Value(), ArrayRef<int64_t>(lhsBatch),
                                    ArrayRef<int64_t>(rhsBatch), ArrayRef<int64_t>(lhsContracting),
                                    ArrayRef<int64_t>(rhsContracting));
  }

private:
  static Value absorb(Value value, ArrayRef<int64_t> free, SmallVector<int64_t>& batch,
                      SmallVector<int64_t>& contracting) {
    auto transpose = value.getDefiningOp<ir::TransposeOp>();
    if (!transpose)
      return value;
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    if (!llvm::is_sorted(llvm::map_range(free, [&](int64_t d) { return permutation[d]; })))
      return value;
    for (SmallVector<int64_t>* dims : {&batch, &contracting})
      for (int64_t& d : *dims)
        d = permutation[d];
    return transpose.getOperand();
  }
};

/// A norm of each row does not mind where the rows are (norms of queries and keys, per head).
template <typename Op> struct SinkThroughNorm : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().template getDefiningOp<ir::TransposeOp>();
    auto axis = static_cast<size_t>(op.getAxis());
    if (!transpose || llvm::any_of(op->getResults().drop_front(),
                                   [](Value statistic) { return !statistic.use_empty(); }))
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    for (size_t d = axis; d < permutation.size(); ++d)
      if (permutation[d] != static_cast<int64_t>(d))
        return {};
    Value norm;
    double epsilon = op.getEpsilon().convertToDouble();
    if constexpr (std::is_same_v<Op, ir::LayerNormOp>)
      norm = b.create<Op>(transpose.getOperand(), op.getScale(), op.getBias(), axis, epsilon)
                 .getResult();
    else
      norm = b.create<Op>(transpose.getOperand(), op.getScale(), axis, epsilon).getResult();
    return b.transpose(norm, permutation);
  }
};

/// What is repeated is the second operand: y + bias, y * scale.
template <typename Op> struct OrderOperands : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter& rewriter) const override {
    if (!isRepeated(op.getLhs()) || isRepeated(op.getRhs()))
      return failure();
    Value lhs = op.getLhs();
    rewriter.modifyOpInPlace(op, [&] {
      op->setOperand(0, op.getRhs());
      op->setOperand(1, lhs);
    });
    return success();
  }

private:
  static bool isRepeated(Value value) {
    return value.getDefiningOp<ir::BroadcastOp>() || value.getDefiningOp<ir::ConstantOp>();
  }
};

struct FoldTransposes : RaisePass<impl::FoldTransposesBase<FoldTransposes>> {
  void addPatterns(RewritePatternSet& set) const override {
    set.add<ComposeTransposes, SinkThroughElementwise, AbsorbIntoContract,
            SinkThroughNorm<ir::LayerNormOp>, SinkThroughNorm<ir::RmsNormOp>,
            OrderOperands<ir::AddOp>, OrderOperands<ir::MulOp>>(set.getContext());
  }
};

} // namespace
} // namespace titan::frontend
