#include "compiler/Lower/Address.h"

#include "dialects/Kernel/Kernel.h"

using namespace mlir;

namespace titan::lower {

namespace {

/// Adds factor * expr to `sum`.
bool addTerm(AffineExpr expr, int64_t factor, Linear& sum) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    sum.strides[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return addTerm(binary.getLHS(), factor, sum) && addTerm(binary.getRHS(), factor, sum);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  return expr.getKind() == AffineExprKind::Mul && constant &&
         addTerm(binary.getLHS(), factor * constant.getValue(), sum);
}

} // namespace

std::optional<Linear> toLinear(AffineExpr expr, unsigned rank) {
  Linear linear{0, SmallVector<int64_t>(rank, 0)};
  return addTerm(expr, 1, linear) ? std::optional(linear) : std::nullopt;
}

AffineExpr toExpr(const Linear& linear, MLIRContext* context) {
  AffineExpr sum = getAffineConstantExpr(linear.constant, context);
  for (auto [d, stride] : llvm::enumerate(linear.strides))
    if (stride != 0)
      sum = sum + getAffineDimExpr(d, context) * stride;
  return sum;
}

std::optional<Linear> addressOf(AffineMap map, ArrayRef<int64_t> shape) {
  Linear sum{0, SmallVector<int64_t>(map.getNumDims(), 0)};
  int64_t stride = 1;
  for (int64_t i = static_cast<int64_t>(shape.size()) - 1; i >= 0; --i) {
    if (!addTerm(map.getResult(i), stride, sum))
      return std::nullopt;
    stride *= shape[i];
  }
  return sum;
}

std::optional<AffineMap> mapOf(const Linear& address, ArrayRef<int64_t> space,
                               ArrayRef<int64_t> shape, MLIRContext* context) {
  unsigned rank = space.size();
  SmallVector<Linear> indices(shape.size(), Linear{0, SmallVector<int64_t>(rank, 0)});
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  int64_t rest = address.constant;
  if (rest < 0)
    return std::nullopt;
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    index.constant = rest / stride;
    rest %= stride;
  }
  // Each stride counts steps of the outermost dimension that it is a multiple of.
  for (unsigned d = 0; d < rank; ++d) {
    int64_t stride = address.strides[d];
    if (stride == 0 || space[d] == 1)
      continue;
    bool placed = false;
    for (unsigned i = 0; i < shape.size() && !placed; ++i)
      if (shape[i] > 1 && stride % strides[i] == 0) {
        indices[i].strides[d] = stride / strides[i];
        placed = true;
      }
    if (!placed)
      return std::nullopt;
  }
  SmallVector<AffineExpr> results;
  for (auto [index, extent] : llvm::zip_equal(indices, shape)) {
    int64_t low = index.constant, high = index.constant;
    for (unsigned d = 0; d < rank; ++d)
      (index.strides[d] < 0 ? low : high) += index.strides[d] * (space[d] - 1);
    if (low < 0 || high >= extent)
      return std::nullopt;
    results.push_back(toExpr(index, context));
  }
  return AffineMap::get(rank, 0, results, context);
}

Value sourceOf(Value view) {
  while (auto cast = view.getDefiningOp<kernel::CastShapeOp>())
    view = cast.getSource();
  return view;
}

} // namespace titan::lower
