// Lowering of the ops that only move elements: they become maps.
#include "compiler/Lower/Rules.h"
#include "compiler/Support/LoopChain.h"
#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace titan::lower {

namespace {

struct Rules {
  static LogicalResult lower(ir::ReshapeOp op, LoweringBuilder& l) {
    l.replace(l.castShape(op.getOperand(), op.getType().getShape()));
    return success();
  }

  static LogicalResult lower(ir::TransposeOp op, LoweringBuilder& l) {
    l.replace(l.transpose(op.getOperand(), op.getPermutation()));
    return success();
  }

  static LogicalResult lower(ir::BroadcastOp op, LoweringBuilder& l) {
    l.replace(
        l.move(op.getType(), op.getOperand(), l.project(op.getType().getRank(), op.getDims())));
    return success();
  }

  static LogicalResult lower(ir::SliceOp op, LoweringBuilder& l) {
    l.isDecidedByOp = false;
    if ((op.getOperand().getDefiningOp<dist::WaitOp>() && cutsOutermost(op)) || isPartOfBatch(op)) {
      Value first = arith::ConstantIndexOp::create(l.builder, l.loc, op.getOffsets()[0]);
      l.replace(kernel::RowsOp::create(l.builder, l.loc, op.getType(), op.getOperand(), first)
                    .getResult());
      return success();
    }
    SmallVector<AffineExpr> results;
    for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(op.getOffsets(), op.getStrides())))
      results.push_back(l.dim(d) * std::get<1>(pair) + std::get<0>(pair));
    l.replace(l.move(op.getType(), op.getOperand(), l.map(op.getType().getRank(), results)));
    return success();
  }

  static LogicalResult lower(ir::ReverseOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    SmallVector<AffineExpr> results;
    for (int64_t d = 0; d < type.getRank(); ++d)
      results.push_back(llvm::is_contained(op.getDims(), d)
                            ? l.dim(d) * -1 + (type.getDimSize(d) - 1)
                            : l.dim(d));
    l.replace(l.move(type, op.getOperand(), l.map(type.getRank(), results)));
    return success();
  }

  static LogicalResult lower(ir::PadOp op, LoweringBuilder& l) {
    l.isDecidedByOp = false;
    std::optional<int64_t> end = isSent(op) ? endPadded(op) : std::nullopt;
    l.replace(end ? padEnd(op, *end, l)
                  : l.pad(op.getType(), op.getOperand(), op.getLow(), op.getInterior(),
                          [&](Body& b) { return paddingOf(op, b); }));
    return success();
  }

  /// What other ranks read is written once: the value goes behind the operand only.
  static Value padEnd(ir::PadOp op, int64_t end, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    ArrayRef<int64_t> shape = tensorType(op.getOperand()).getShape();
    SmallVector<int64_t> space(type.getShape());
    SmallVector<AffineExpr> places;
    for (int64_t d = 0; d < type.getRank(); ++d)
      places.push_back(d == end ? l.dim(d) + shape[d] : l.dim(d));
    space[end] -= shape[end];
    Value behind =
        l.fused(space, {}, LoweringBuilder::Write{type, l.map(space.size(), places)},
                [&](Body& b, ValueRange) { return SmallVector<Value>{paddingOf(op, b)}; })[0];
    LoweringBuilder::Read read = {op.getOperand(), l.identity(shape.size())};
    return l.fused(shape, read, LoweringBuilder::Write{type, l.identity(shape.size()), behind},
                   [](Body&, ValueRange values) { return SmallVector<Value>(values); })[0];
  }

  static Value paddingOf(ir::PadOp op, Body& b) {
    Type element = op.getType().getElementType();
    double value = op.getValue().convertToDouble();
    if (isa<FloatType>(element))
      return b.constant(Body::computeType(element), value);
    return b.integer(b.builder.getIntegerType(element.getIntOrFloatBitWidth()),
                     static_cast<int64_t>(value));
  }

  /// Is it a source of a collective?
  static bool isSent(ir::PadOp op) {
    return llvm::any_of(op->getUsers(), llvm::IsaPred<dist::StartOp>);
  }

  /// The dimension behind whose end alone there is padding.
  static std::optional<int64_t> endPadded(ir::PadOp op) {
    auto isZero = [](int64_t x) { return x == 0; };
    if (!llvm::all_of(op.getLow(), isZero) || !llvm::all_of(op.getInterior(), isZero))
      return std::nullopt;
    std::optional<int64_t> end;
    auto inner = tensorType(op.getOperand()).getShape();
    for (auto [d, extents] : llvm::enumerate(llvm::zip_equal(inner, op.getType().getShape())))
      if (std::get<0>(extents) != std::get<1>(extents)) {
        if (end)
          return std::nullopt;
        end = static_cast<int64_t>(d);
      }
    return end;
  }

  /// Does it take neighbours along the outermost dimension, and all of the others?
  static bool cutsOutermost(ir::SliceOp op) {
    return op.getType().getRank() > 0 && op.getStrides()[0] == 1 &&
           op.getType().getShape().drop_front() ==
               tensorType(op.getOperand()).getShape().drop_front();
  }

  /// One kernel a piece, each into what the pieces before it have written.
  static LogicalResult lower(ir::ConcatOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    Value joined = l.empty(type);
    int64_t offset = 0;
    for (Value piece : op.getInputs()) {
      auto shape = tensorType(piece).getShape();
      SmallVector<AffineExpr> results;
      for (int64_t d = 0; d < type.getRank(); ++d)
        results.push_back(d == static_cast<int64_t>(op.getDim()) ? l.dim(d) + offset : l.dim(d));
      LoweringBuilder::Read read = {piece, l.identity(shape.size())};
      joined =
          l.fused(shape, read, LoweringBuilder::Write{type, l.map(shape.size(), results), joined},
                  [](Body&, ValueRange values) { return SmallVector<Value>(values); })[0];
      offset += shape[op.getDim()];
    }
    l.replace(joined);
    return success();
  }

  static LogicalResult lower(ir::IotaOp op, LoweringBuilder& l) {
    Type element = op.getType().getElementType();
    l.replace(l.elementwise(op.getType(), {}, [&](Body& b, ValueRange) -> Value {
      auto type =
          b.builder.getIntegerType(isa<FloatType>(element) ? 64 : element.getIntOrFloatBitWidth());
      Value index = b.create<arith::IndexCastOp>(type, b.index(op.getDim()));
      return isa<FloatType>(element) ? b.create<arith::SIToFPOp>(Body::computeType(element), index)
                                     : index;
    }));
    return success();
  }
};

} // namespace

void attachShapeRules(MLIRContext* context) {
  attachRules<Rules, ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReverseOp,
              ir::PadOp, ir::ConcatOp, ir::IotaOp>(context);
}

} // namespace titan::lower
