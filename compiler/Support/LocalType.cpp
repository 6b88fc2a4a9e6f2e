#include "compiler/Support/LocalType.h"

using namespace mlir;

namespace titan {

FailureOr<Placement> placementOf(ir::StateOp state, std::span<const MeshAxis> mesh) {
  Placement placement;
  std::optional<ir::PlacementAttr> attribute = state.getPlacement();
  if (!attribute)
    return placement;
  for (auto [axis, dim] : llvm::zip_equal(attribute->getAxes(), attribute->getDims())) {
    auto found = llvm::find_if(mesh, [&](const MeshAxis& each) { return each.name == axis; });
    if (found == mesh.end())
      return state.emitOpError("is cut by mesh axis ")
             << axis << ", which the recipe does not have";
    placement.push_back({static_cast<uint8_t>(found - mesh.begin()), dim});
  }
  return placement;
}

FailureOr<RankedTensorType> localTypeOf(ir::StateOp state, std::span<const MeshAxis> mesh) {
  FailureOr<Placement> placement = placementOf(state, mesh);
  if (failed(placement))
    return failure();
  RankedTensorType type = state.getTensorType();
  std::optional<Shape> local =
      localShape(Shape(type.getShape().begin(), type.getShape().end()), *placement, mesh);
  assert(local && "the verifiers of the state and of its placement know the rule");
  return type.clone(*local);
}

} // namespace titan
