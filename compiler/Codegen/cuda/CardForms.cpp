#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {

#define GEN_PASS_DEF_CARDFORMS
#include "compiler/Codegen/kernel/Passes.h.inc"

namespace {

using arith::CmpFPredicate, arith::CmpIPredicate;

/// What `value` has in each lane, or the scalar itself.
Value scalarOf(Value value) {
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  return broadcast ? broadcast.getSource() : value;
}

/// Maximum and minimum say what they do with zeros of either sign, a comparison does not: no limit
/// is zero. NaN is none.
bool isUsableLimit(Value value) {
  llvm::APFloat constant(0.0);
  return matchPattern(scalarOf(value), m_ConstantFloat(&constant)) && !constant.isNaN() &&
         !constant.isZero();
}

enum class Clamp { None, AtLeast, AtMost };

/// Of a select between a value and a limit by `value predicate limit`; `takesLimit`: it takes the
/// limit where that holds. It has to take the value where that is NaN.
Clamp clampOf(CmpFPredicate predicate, bool takesLimit) {
  switch (predicate) {
  case CmpFPredicate::OLT:
  case CmpFPredicate::OLE:
    return takesLimit ? Clamp::AtLeast : Clamp::None;
  case CmpFPredicate::OGT:
  case CmpFPredicate::OGE:
    return takesLimit ? Clamp::AtMost : Clamp::None;
  case CmpFPredicate::UGT:
  case CmpFPredicate::UGE:
    return takesLimit ? Clamp::None : Clamp::AtLeast;
  case CmpFPredicate::ULT:
  case CmpFPredicate::ULE:
    return takesLimit ? Clamp::None : Clamp::AtMost;
  default:
    return Clamp::None;
  }
}

/// Of the comparison with its operands exchanged.
CmpFPredicate mirrored(CmpFPredicate predicate) {
  switch (predicate) {
  case CmpFPredicate::OLT:
    return CmpFPredicate::OGT;
  case CmpFPredicate::OLE:
    return CmpFPredicate::OGE;
  case CmpFPredicate::OGT:
    return CmpFPredicate::OLT;
  case CmpFPredicate::OGE:
    return CmpFPredicate::OLE;
  case CmpFPredicate::ULT:
    return CmpFPredicate::UGT;
  case CmpFPredicate::ULE:
    return CmpFPredicate::UGE;
  case CmpFPredicate::UGT:
    return CmpFPredicate::ULT;
  case CmpFPredicate::UGE:
    return CmpFPredicate::ULE;
  default:
    return predicate;
  }
}

/// value < limit ? limit : value, in any spelling that keeps NaN, is one instruction: max.NaN.
struct FormClamp : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter& rewriter) const override {
    auto compare = op.getCondition().getDefiningOp<arith::CmpFOp>();
    if (!compare || !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Value value = compare.getLhs(), limit = compare.getRhs();
    CmpFPredicate predicate = compare.getPredicate();
    if (isUsableLimit(value)) {
      std::swap(value, limit);
      predicate = mirrored(predicate);
    }
    if (!isUsableLimit(limit))
      return failure();
    const bool takesLimit = op.getTrueValue() == limit && op.getFalseValue() == value,
               takesValue = op.getTrueValue() == value && op.getFalseValue() == limit;
    switch (takesLimit || takesValue ? clampOf(predicate, takesLimit) : Clamp::None) {
    case Clamp::AtLeast:
      rewriter.replaceOpWithNewOp<arith::MaximumFOp>(op, value, limit);
      return success();
    case Clamp::AtMost:
      rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, value, limit);
      return success();
    case Clamp::None:
      return failure();
    }
    llvm_unreachable("a clamp");
  }
};

/// Lanes that are numbered from a common base on, in i64 or index, are compared with a number that
/// all share: a 64-bit comparison takes two instructions. Where the number lies among the lanes is
/// found once, and the lanes compare 32 bits of it.
struct CompareLaneNumbers : OpRewritePattern<arith::CmpIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::CmpIOp op, PatternRewriter& rewriter) const override {
    const CmpIPredicate predicate = op.getPredicate();
    if (predicate != CmpIPredicate::eq && predicate != CmpIPredicate::ne)
      return failure();
    for (auto [numbers, shared] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      auto number = shared.getDefiningOp<vector::BroadcastOp>();
      Value base = baseOf(numbers);
      if (!base || !number || isa<VectorType>(number.getSource().getType()))
        continue;
      Location loc = op.getLoc();
      const int64_t lanes = cast<VectorType>(numbers.getType()).getDimSize(0);
      Type i32 = rewriter.getI32Type(), i64 = rewriter.getI64Type();
      auto wide = [&](Value value) {
        return value.getType() == i64
                   ? value
                   : arith::IndexCastOp::create(rewriter, loc, i64, value).getResult();
      };
      auto constant = [&](int64_t value, Type type) {
        return arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(type, value))
            .getResult();
      };
      Value place = arith::SubIOp::create(rewriter, loc, wide(number.getSource()), wide(base));
      Value isAmong =
          arith::CmpIOp::create(rewriter, loc, CmpIPredicate::ult, place, constant(lanes, i64));
      place = arith::SelectOp::create(rewriter, loc, isAmong,
                                      arith::TruncIOp::create(rewriter, loc, i32, place),
                                      constant(-1, i32));
      auto type = VectorType::get({lanes}, i32);
      SmallVector<int32_t> counting(lanes);
      std::iota(counting.begin(), counting.end(), 0);
      Value each = arith::ConstantOp::create(
          rewriter, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(counting)));
      rewriter.replaceOpWithNewOp<arith::CmpIOp>(
          op, predicate, each, vector::BroadcastOp::create(rewriter, loc, type, place));
      return success();
    }
    return failure();
  }

private:
  /// The base of lanes numbered base, base + 1 and so on; null: these are others.
  static Value baseOf(Value numbers) {
    if (auto cast = numbers.getDefiningOp<arith::IndexCastOp>())
      if (getElementTypeOrSelf(cast.getType()).isInteger(64))
        numbers = cast.getIn();
    auto type = dyn_cast<VectorType>(numbers.getType());
    auto sum = numbers.getDefiningOp<arith::AddIOp>();
    if (!type || !sum || (!type.getElementType().isIndex() && !type.getElementType().isInteger(64)))
      return {};
    auto base = sum.getLhs().getDefiningOp<vector::BroadcastOp>();
    DenseIntElementsAttr steps;
    if (!base || isa<VectorType>(base.getSource().getType()) ||
        !matchPattern(sum.getRhs(), m_Constant(&steps)))
      return {};
    for (auto [i, step] : llvm::enumerate(steps.getValues<llvm::APInt>()))
      if (step != i)
        return {};
    return base.getSource();
  }
};

struct CardForms : impl::CardFormsBase<CardForms> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<FormClamp, CompareLaneNumbers>(context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
