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
  ComposeTransposes(MLIRContext* context, bool sink) : RaisePattern(context), sink_(sink) {}

  Value raise(ir::TransposeOp op, ir::TensorBuilder& b) const override {
    Value operand = op.getOperand();
    if (isIdentity(op.getPermutation()))
      return operand;
    if (operand.getDefiningOp<ir::TransposeOp>() || operand.getDefiningOp<ir::BroadcastOp>())
      return transposed(b, operand, op.getPermutation());
    ArrayRef<int64_t> shape = ir::tensorType(operand).getShape();
    if (keepsOrder(op.getPermutation(), shape))
      return reshaped(b, operand, ir::tensorType(op.getResult()).getShape());
    // Dimensions of extent 1 are put where they belong by a reshape: one below may have added them,
    // one above may drop them.
    if (!llvm::is_contained(shape, 1) || !(sink_ ? meetsUnits(op) : isReshape(operand)))
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

private:
  static bool isReshape(Value value) { return value.getDefiningOp<ir::ReshapeOp>() != nullptr; }

  static bool meetsUnits(ir::TransposeOp op) {
    const auto isOfUnits = [](Operation* other) {
      auto reshape = dyn_cast_if_present<ir::ReshapeOp>(other);
      return reshape && movesUnitsAlone(reshape);
    };
    return isOfUnits(op.getOperand().getDefiningOp()) || llvm::any_of(op->getUsers(), isOfUnits);
  }

  bool sink_;
};

/// f(transpose(x), splat) becomes transpose(f(x, splat)): scales, signs and casts stand beside what
/// made x.
struct SinkThroughScale : RewritePattern {
  explicit SinkThroughScale(MLIRContext* context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation* op, PatternRewriter& rewriter) const override {
    return sinkTranspose(op, rewriter, /*several=*/false,
                         [](Value operand) { return splatOf(operand).has_value(); });
  }
};

/// A contraction names its dimensions: it needs no transposed operand. Where free dimensions change
/// places, its result does.
struct AbsorbIntoContract : RaisePattern<ir::ContractOp> {
  AbsorbIntoContract(MLIRContext* context, bool moves) : RaisePattern(context), moves_(moves) {}

  Value raise(ir::ContractOp op, ir::TensorBuilder& b) const override {
    if (op.getAcc())
      return {};
    Side lhs{op.getLhs(), op.getLhsBatch(), op.getLhsContracting(), op.getLhsFree()};
    Side rhs{op.getRhs(), op.getRhsBatch(), op.getRhsContracting(), op.getRhsFree()};
    bool left = lhs.absorb(moves_), right = rhs.absorb(moves_);
    if (!left && !right)
      return {};
    Value product = b.create<ir::ContractOp>(
        lhs.value, rhs.value, Value(), ArrayRef<int64_t>(lhs.batch), ArrayRef<int64_t>(rhs.batch),
        ArrayRef<int64_t>(lhs.contracting), ArrayRef<int64_t>(rhs.contracting));
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, lhs.batch.size()));
    for (const Side* side : {&lhs, &rhs}) {
      auto before = static_cast<int64_t>(order.size());
      for (int64_t rank : side->freeRanks())
        order.push_back(before + rank);
    }
    return transposed(b, product, order);
  }

private:
  struct Side {
    Side(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> contracting,
         ArrayRef<int64_t> free)
        : value(value), batch(batch), contracting(contracting), free(free) {}

    /// Takes a transposition away, if free dimensions keep their places or may move.
    bool absorb(bool moves) {
      auto transpose = value.getDefiningOp<ir::TransposeOp>();
      if (!transpose || (!moves && !llvm::is_sorted(llvm::map_range(free, [&](int64_t d) {
            return transpose.getPermutation()[d];
          }))))
        return false;
      for (SmallVector<int64_t>* dims : {&batch, &contracting, &free})
        for (int64_t& d : *dims)
          d = transpose.getPermutation()[d];
      value = transpose.getOperand();
      return true;
    }
    /// The place of each free dimension among them.
    SmallVector<int64_t> freeRanks() const {
      SmallVector<int64_t> ranks;
      for (int64_t d : free)
        ranks.push_back(llvm::count_if(free, [&](int64_t other) { return other < d; }));
      return ranks;
    }

    Value value;
    SmallVector<int64_t> batch, contracting, free; ///< free in the order of the result's dimensions
  };

  bool moves_;
};

/// A norm of each row does not mind where the rows are (norms of queries and keys, per head).
template <typename Op> struct SinkThroughNorm : RaisePattern<Op> {
  using RaisePattern<Op>::RaisePattern;

  Value raise(Op op, ir::TensorBuilder& b) const override {
    auto transpose = op.getOperand().template getDefiningOp<ir::TransposeOp>();
    if (!transpose || !hasOnlyResult(op))
      return {};
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    const SmallVector<int64_t> dims = normalisedDims(op);
    for (int64_t d : dims)
      if (permutation[d] != d)
        return {};
    return b.transpose(cloneNorm(b, op, transpose.getOperand(), dims), permutation);
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
  using RaisePass::RaisePass;

  void addPatterns(RewritePatternSet& set) const override {
    set.add<SinkThroughScale, SinkThroughNorm<ir::LayerNormOp>, SinkThroughNorm<ir::RmsNormOp>,
            OrderOperands<ir::AddOp>, OrderOperands<ir::MulOp>>(set.getContext());
    set.add<ComposeTransposes, AbsorbIntoContract>(set.getContext(), sink);
    if (!sink)
      return;
    addTransposeSinks(set);
    addReshapeFolds(set);
  }
};

} // namespace
} // namespace titan::frontend
