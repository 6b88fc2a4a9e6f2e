#include "compiler/Codegen/kernel/ApplyPatterns.h"
#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

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

/// Lanes that are numbered from a common base on, in i64 or index, beside a number that all share.
struct NumberedLanes {
  Value base, number;
  int64_t count;
};

/// The base of lanes numbered base, base + 1 and so on; null: these are others.
Value baseOf(Value numbers) {
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

/// What `op` compares, where it asks which lane has the number, or which ones have not.
std::optional<NumberedLanes> numberedLanes(arith::CmpIOp op) {
  if (op.getPredicate() != CmpIPredicate::eq && op.getPredicate() != CmpIPredicate::ne)
    return std::nullopt;
  for (auto [numbers, shared] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
    auto number = shared.getDefiningOp<vector::BroadcastOp>();
    Value base = baseOf(numbers);
    if (base && number && !isa<VectorType>(number.getSource().getType()))
      return NumberedLanes{base, number.getSource(),
                           cast<VectorType>(numbers.getType()).getDimSize(0)};
  }
  return std::nullopt;
}

/// The number as it counts from the base, in i64.
Value placeOf(OpBuilder& builder, Location loc, const NumberedLanes& lanes) {
  auto wide = [&](Value value) {
    Type i64 = builder.getI64Type();
    return value.getType() == i64
               ? value
               : arith::IndexCastOp::create(builder, loc, i64, value).getResult();
  };
  return arith::SubIOp::create(builder, loc, wide(lanes.number), wide(lanes.base));
}

Value isAmongLanes(OpBuilder& builder, Location loc, const NumberedLanes& lanes, Value place) {
  Value count = arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(lanes.count));
  return arith::CmpIOp::create(builder, loc, CmpIPredicate::ult, place, count);
}

/// Which lane is number `place` (i32) of them, or which ones are not.
Value compareLanes(OpBuilder& builder, Location loc, CmpIPredicate predicate, Value place,
                   int64_t count) {
  auto type = VectorType::get({count}, builder.getI32Type());
  SmallVector<int32_t> counting(count);
  std::iota(counting.begin(), counting.end(), 0);
  Value each = arith::ConstantOp::create(builder, loc,
                                         DenseElementsAttr::get(type, ArrayRef<int32_t>(counting)));
  return arith::CmpIOp::create(builder, loc, predicate, each,
                               vector::BroadcastOp::create(builder, loc, type, place));
}

/// A 64-bit comparison takes two instructions. Where the number lies among the lanes is found once,
/// and the lanes compare 32 bits of it.
struct CompareLaneNumbers : OpRewritePattern<arith::CmpIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::CmpIOp op, PatternRewriter& rewriter) const override {
    std::optional<NumberedLanes> lanes = numberedLanes(op);
    if (!lanes)
      return failure();
    Location loc = op.getLoc();
    Value place = placeOf(rewriter, loc, *lanes);
    Value isAmong = isAmongLanes(rewriter, loc, *lanes, place);
    Value none = arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(-1));
    place = arith::TruncIOp::create(rewriter, loc, rewriter.getI32Type(), place);
    place = arith::SelectOp::create(rewriter, loc, isAmong, place, none);
    rewriter.replaceOp(op, compareLanes(rewriter, loc, op.getPredicate(), place, lanes->count));
    return success();
  }
};

/// The lanes of which one, that of a common number, has a value and all others +0.
std::optional<NumberedLanes> lanesOfOneHot(arith::SelectOp op) {
  auto compare = op.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != CmpIPredicate::eq ||
      !matchPattern(op.getFalseValue(), m_PosZeroFloat()))
    return std::nullopt;
  return numberedLanes(compare);
}

/// Moves `builder` up in its block to where all of `values` are there.
void moveBehind(OpBuilder& builder, ArrayRef<Value> values) {
  Block* block = builder.getInsertionBlock();
  Operation* last = nullptr;
  for (Value value : values)
    if (Operation* definition = value.getDefiningOp();
        definition && definition->getBlock() == block)
      if (!last || last->isBeforeInBlock(definition))
        last = definition;
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(block);
}

/// A label is among few lanes. To take +0 from a value, or to add it to a sum that is never -0,
/// changes nothing: it is done where the label is. As early as may be, so that what is added need
/// not wait in registers.
void skipAbsentLanes(Operation* op) {
  Value whole = op->getOperand(0);
  auto oneHot = op->getOperand(1).getDefiningOp<arith::SelectOp>();
  std::optional<NumberedLanes> lanes = oneHot ? lanesOfOneHot(oneHot) : std::nullopt;
  if (!lanes || oneHot->getBlock() != op->getBlock())
    return;
  OpBuilder builder(op);
  moveBehind(builder, {whole, lanes->base, lanes->number, oneHot.getTrueValue()});
  Location loc = op->getLoc();
  Value place = placeOf(builder, loc, *lanes);
  Value isAmong = isAmongLanes(builder, loc, *lanes, place);
  auto branch = scf::IfOp::create(builder, loc, whole.getType(), isAmong, /*withElseRegion=*/true);
  op->replaceAllUsesWith(branch.getResults());
  OpBuilder then = branch.getThenBodyBuilder(), otherwise = branch.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, whole);
  place = arith::TruncIOp::create(then, loc, then.getI32Type(), place);
  Value isLane = compareLanes(then, loc, CmpIPredicate::eq, place, lanes->count);
  Value term =
      arith::SelectOp::create(then, loc, isLane, oneHot.getTrueValue(), oneHot.getFalseValue());
  op->setOperand(1, term);
  op->moveBefore(then.getInsertionBlock(), then.getInsertionPoint());
  scf::YieldOp::create(then, loc, op->getResults());
}

/// A bf16 is the upper half of an f32. Two of them lie in a register: the lower one is moved up,
/// the upper one is what remains without the lower. LLVM takes each out as 16 bits and moves these.
struct WidenPairs : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter& rewriter) const override {
    auto narrow = dyn_cast<VectorType>(op.getIn().getType());
    if (!narrow || !narrow.getElementType().isBF16() || narrow.getDimSize(0) % 2 != 0 ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Location loc = op.getLoc();
    auto pairs = VectorType::get({narrow.getDimSize(0) / 2}, rewriter.getI32Type());
    auto constant = [&](uint32_t value) {
      return arith::ConstantOp::create(rewriter, loc,
                                       DenseElementsAttr::get(pairs, llvm::APInt(32, value)));
    };
    Value both = vector::BitCastOp::create(rewriter, loc, pairs, op.getIn());
    Value lower = arith::ShLIOp::create(rewriter, loc, both, constant(16));
    Value upper = arith::AndIOp::create(rewriter, loc, both, constant(0xffff0000));
    Value bits = vector::InterleaveOp::create(rewriter, loc, lower, upper);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits);
    return success();
  }
};

struct CardForms : impl::CardFormsBase<CardForms> {
  LogicalResult initialize(MLIRContext* context) override {
    RewritePatternSet set(context);
    set.add<FormClamp, CompareLaneNumbers, WidenPairs>(context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    SmallVector<Operation*> differences;
    getOperation()->walk([&](Operation* op) {
      if (isa<arith::SubFOp>(op) || (isa<arith::AddFOp>(op) && op->hasAttr(runningSumAttr)))
        differences.push_back(op);
    });
    llvm::for_each(differences, skipAbsentLanes);
    if (failed(applyPatterns(getOperation(), patterns)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
} // namespace titan::codegen
