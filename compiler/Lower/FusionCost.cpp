#include "compiler/Lower/FusionCost.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {

int64_t pointsOf(ArrayRef<int64_t> extents) {
  int64_t points = 1;
  for (int64_t extent : extents)
    points *= extent;
  return points;
}

bool isCheap(FusedOp op) {
  unsigned operations = 0;
  for (Operation& body : op.getBlock().without_terminator()) {
    if (isa<arith::ConstantOp>(body))
      continue;
    if (isa<kernel::ReduceOp, kernel::RandomHalfOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(
            body) ||
        isa<math::MathDialect>(body.getDialect()))
      return false;
    ++operations;
  }
  return operations <= 4;
}

bool isDuplicable(FusedOp op) {
  int64_t read = 0;
  for (Value in : op.getIns())
    read += cast<ShapedType>(in.getType()).getNumElements();
  return isCheap(op) && read * 2 <= pointsOf(op.getSpace());
}

bool repeatsWork(const MergedSpace& space, FusedOp producer) {
  if (pointsOf(producer.getSpace()) == 1)
    return pointsOf(space.extents) > 1;
  llvm::SmallBitVector used(space.extents.size());
  for (AffineExpr expr : space.toProducer.getResults())
    for (unsigned d = 0; d < space.extents.size(); ++d)
      if (expr.isFunctionOfDim(d))
        used.set(d);
  int last = used.find_last();
  for (int d = 0; d < last; ++d)
    if (!used.test(d) && space.extents[d] != 1)
      return true;
  return false;
}

} // namespace titan::lower
