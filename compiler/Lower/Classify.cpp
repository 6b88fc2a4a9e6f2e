#include "compiler/Lower/Classify.h"

#include "compiler/Lower/Address.h"

using namespace mlir;

namespace titan::lower {

using kernel::KernelClass;

namespace {

/// The dimensions of `dims` that have more than one point.
SmallVector<int64_t> significant(ArrayRef<int64_t> dims, ArrayRef<int64_t> space) {
  SmallVector<int64_t> kept;
  for (int64_t d : dims)
    if (space[d] != 1)
      kept.push_back(d);
  return kept;
}

} // namespace

bool isRowReduction(kernel::ReduceOp reduce) {
  return isRowReduction(reduce.getDims(), cast<kernel::FusedOp>(reduce->getParentOp()).getSpace());
}

bool isRowReduction(ArrayRef<int64_t> dims, ArrayRef<int64_t> space) {
  SmallVector<int64_t> kept = significant(dims, space);
  for (int64_t d = kept.empty() ? space.size() : kept.front();
       d < static_cast<int64_t>(space.size()); ++d)
    if (space[d] != 1 && !llvm::is_contained(kept, d))
      return false;
  return true;
}

int64_t strideAlong(AffineMap map, ArrayRef<int64_t> shape, unsigned dim) {
  return addressOf(map, shape)->strides[dim];
}

namespace {

/// Does some operand jump along the innermost dimension?
bool hasStridedOperand(kernel::FusedOp op) {
  ArrayRef<int64_t> space = op.getSpace();
  int64_t inner = static_cast<int64_t>(space.size()) - 1;
  while (inner >= 0 && space[inner] == 1)
    --inner;
  if (inner < 0)
    return false;
  auto jumps = [&](Value operand, AffineMap map) {
    if (map.isIdentity())
      return false;
    int64_t stride = strideAlong(map, cast<ShapedType>(operand.getType()).getShape(), inner);
    return stride != 0 && stride != 1;
  };
  for (auto [i, in] : llvm::enumerate(op.getIns()))
    if (jumps(in, op.getInMap(i)))
      return true;
  for (auto [j, out] : llvm::enumerate(op.getOuts()))
    if (jumps(out, op.getOutMap(j)))
      return true;
  return false;
}

/// The dimensions that the row and the column reductions of a kernel combine.
struct ReducedDims {
  std::optional<SmallVector<int64_t>> row, column;
  bool any = false; ///< also true if all are of one element
};

// Each returns why the kernel fits no class; nothing if it may.

StringRef collect(kernel::FusedOp op, ReducedDims& reduced) {
  for (auto reduce : op.getBlock().getOps<kernel::ReduceOp>()) {
    reduced.any = true;
    bool isRow = isRowReduction(reduce);
    auto& dims = isRow ? reduced.row : reduced.column;
    SmallVector<int64_t> own = significant(reduce.getDims(), op.getSpace());
    if (own.empty())
      continue; // of one element: any loop does
    if (dims && *dims != own)
      return isRow ? "row reductions over different dimensions"
                   : "column reductions over different dimensions";
    dims = own;
  }
  return {};
}

/// Rows stand together, right before inner; without row reductions inner is what follows them.
StringRef placeColumns(ArrayRef<int64_t> space, const ReducedDims& reduced, Loops& loops) {
  loops.firstRow = reduced.column->front();
  unsigned afterRows = reduced.column->back() + 1;
  for (unsigned d = loops.firstRow; d < afterRows; ++d)
    if (space[d] != 1 && !llvm::is_contained(*reduced.column, d))
      return "a column reduction over dimensions that do not stand together";
  if (!reduced.row) {
    loops.firstInner = afterRows;
    return {};
  }
  for (unsigned d = afterRows; d < loops.firstInner; ++d)
    if (space[d] != 1)
      return "a dimension between those of column and row reductions";
  if (loops.firstInner < afterRows)
    return "a dimension in both column and row reductions";
  return {};
}

/// One sweep: what comes from a column reduction meets the rows no more.
StringRef checkSweep(kernel::FusedOp op, ArrayRef<int64_t> columnDims) {
  llvm::SmallPtrSet<Operation*, 16> afterSweep;
  for (Operation& body : op.getBlock().without_terminator()) {
    auto reduce = dyn_cast<kernel::ReduceOp>(body);
    bool late = llvm::any_of(body.getOperands(),
                             [&](Value v) { return afterSweep.contains(v.getDefiningOp()); });
    if (late) {
      if (reduce)
        return "a reduction of a column reduction's result";
      llvm::SmallBitVector dims = op.getDependence(body.getResult(0));
      for (int64_t d : columnDims)
        if (dims.test(d))
          return "a column reduction's result used again in the rows";
    }
    if (late || (reduce && !isRowReduction(reduce)))
      afterSweep.insert(&body);
  }
  return {};
}

} // namespace

FailureOr<Loops> classify(kernel::FusedOp op, std::string* why) {
  unsigned rank = op.getSpace().size();
  Loops loops = {KernelClass::Flat, rank, rank};
  ReducedDims reduced;
  StringRef refusal = collect(op, reduced);
  if (refusal.empty() && !reduced.any) {
    if (hasStridedOperand(op))
      loops.kernelClass = KernelClass::Transpose;
    return loops;
  }
  if (reduced.row)
    loops.firstRow = loops.firstInner = reduced.row->front();
  loops.kernelClass = KernelClass::Row;
  if (reduced.column) {
    loops.kernelClass = KernelClass::Column;
    if (refusal.empty())
      refusal = placeColumns(op.getSpace(), reduced, loops);
    if (refusal.empty())
      refusal = checkSweep(op, *reduced.column);
  }
  if (refusal.empty())
    return loops;
  if (why)
    *why = refusal.str();
  return failure();
}

} // namespace titan::lower
