// Lowering of what a rank does by itself: its part of a tensor that all ranks have.
#include "compiler/Lower/Rules.h"
#include "dialects/Dist/Dist.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// This rank's place in its group on `axes`: row-major in its coordinates.
Value placeInGroup(LoweringBuilder& l, ArrayAttr axes) {
  dist::MeshAttr mesh = dist::meshOf(l.op);
  OpBuilder& b = l.builder;
  Value place;
  for (auto name : axes.getAsRange<StringAttr>()) {
    Value coordinate = dist::CoordinateOp::create(b, l.loc, name);
    if (place) {
      Value ranks =
          arith::ConstantIndexOp::create(b, l.loc, mesh.getExtents()[*mesh.find(name.getValue())]);
      Value before = arith::MulIOp::create(b, l.loc, place, ranks);
      place = arith::AddIOp::create(b, l.loc, before, coordinate);
    } else {
      place = coordinate;
    }
  }
  return place;
}

struct Rules {
  /// Seen as [outer * ranks, part * inner], the whole has this rank's rows `ranks` apart, from the
  /// one of its place on. One row is a view; several are copied to lie next to each other.
  static LogicalResult lower(dist::TakeShardOp op, LoweringBuilder& l) {
    auto part = cast<RankedTensorType>(op.getResult().getType());
    const int64_t dim = op.getDim();
    const int64_t ranks =
        tensorType(op.getOperand()).getDimSize(dim) / std::max<int64_t>(part.getDimSize(dim), 1);
    int64_t outer = 1, row = 1;
    for (auto [d, extent] : llvm::enumerate(part.getShape()))
      (static_cast<int64_t>(d) < dim ? outer : row) *= extent;
    if (outer * row == 0) {
      l.replace(l.empty(part));
      return success();
    }
    Value rows = l.castShape(op.getOperand(), {outer * ranks, row});
    Value mine =
        kernel::RowsOp::create(l.builder, l.loc, part.clone({(outer - 1) * ranks + 1, row}), rows,
                               placeInGroup(l, op.getAxes()));
    if (outer > 1)
      mine = l.move(part.clone({outer, row}), mine, l.map(2, {l.dim(0) * ranks, l.dim(1)}));
    l.replace(l.castShape(mine, part.getShape()));
    return success();
  }
};

} // namespace

void attachRankRules(MLIRContext* context) { attachRules<Rules, dist::TakeShardOp>(context); }

} // namespace titan::lower
