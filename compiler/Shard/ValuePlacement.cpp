#include "compiler/Shard/ValuePlacement.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace titan {

dist::PlacementAttr toAttribute(const ValuePlacement& placement, dist::MeshAttr mesh) {
  using Kind = AxisPlacement::Kind;
  SmallVector<StringAttr> axes;
  SmallVector<int64_t> dims;
  for (auto [axis, on] : llvm::zip_equal(mesh.getAxes(), placement)) {
    if (on.isReplicate())
      continue;
    axes.push_back(axis);
    dims.push_back(on.kind == Kind::Shard     ? on.dim
                   : on.kind == Kind::Partial ? dist::PlacementAttr::partial
                                              : dist::PlacementAttr::iteration);
  }
  return dist::PlacementAttr::get(mesh.getContext(), axes, dims);
}

FailureOr<ValuePlacement> toPlacement(dist::PlacementAttr attribute, dist::MeshAttr mesh) {
  ValuePlacement placement(mesh.getAxes().size());
  if (!attribute)
    return placement;
  for (auto [axis, dim] : llvm::zip_equal(attribute.getAxes(), attribute.getDims())) {
    std::optional<unsigned> position = mesh.find(axis);
    if (!position)
      return failure();
    placement[*position] = dim == dist::PlacementAttr::partial     ? AxisPlacement::partial()
                           : dim == dist::PlacementAttr::iteration ? AxisPlacement::iteration()
                                                                   : AxisPlacement::shard(dim);
  }
  return placement;
}

RankedTensorType localType(RankedTensorType whole, const ValuePlacement& placement,
                           dist::MeshAttr mesh) {
  SmallVector<int64_t> shape(whole.getShape());
  for (auto [on, ranks] : llvm::zip_equal(placement, mesh.getExtents()))
    if (on.isShard())
      shape[on.dim] = llvm::divideCeil(shape[on.dim], ranks);
  return whole.clone(shape);
}

} // namespace titan
