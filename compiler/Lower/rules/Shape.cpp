// Lowering of the ops that only move elements: they become maps.
#include "compiler/Lower/Rules.h"

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
    SmallVector<AffineExpr> results;
    for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(op.getOffsets(), op.getStrides())))
      results.push_back(l.dim(d) * std::get<1>(pair) + std::get<0>(pair));
    l.replace(l.move(op.getType(), op.getOperand(), l.map(op.getType().getRank(), results)));
    return success();
  }

  /// The value everywhere, then the operand over it.
  static LogicalResult lower(ir::PadOp op, LoweringBuilder& l) {
    RankedTensorType type = op.getType();
    Type element = type.getElementType();
    Value filled = l.elementwise(type, {}, [&](Body& b, ValueRange) -> Value {
      double value = op.getValue().convertToDouble();
      if (isa<FloatType>(element))
        return b.constant(Body::computeType(element), value);
      return b.integer(b.builder.getIntegerType(element.getIntOrFloatBitWidth()),
                       static_cast<int64_t>(value));
    });
    auto shape = tensorType(op.getOperand()).getShape();
    SmallVector<AffineExpr> results;
    for (auto [d, pair] : llvm::enumerate(llvm::zip_equal(op.getLow(), op.getInterior())))
      results.push_back(l.dim(d) * (1 + std::get<1>(pair)) + std::get<0>(pair));
    LoweringBuilder::Read read = {op.getOperand(), l.identity(shape.size())};
    l.replace(l.fused(shape, read,
                      LoweringBuilder::Write{type, l.map(shape.size(), results), filled},
                      [](Body&, ValueRange values) { return SmallVector<Value>(values); }));
    return success();
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
  attachRules<Rules, ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::PadOp,
              ir::ConcatOp, ir::IotaOp>(context);
}

} // namespace titan::lower
