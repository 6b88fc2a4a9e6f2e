#include "compiler/Shard/Seeds.h"

#include "runtime/program/Recipe.h"

using namespace mlir;

namespace titan {

/// `onData` on the axes that divide the samples, replicated on the others.
static dist::PlacementAttr onDataAxes(dist::MeshAttr mesh, AxisPlacement onData) {
  ValuePlacement placement(mesh.getAxes().size());
  for (auto [i, axis] : llvm::enumerate(mesh.getAxes()))
    if (isDataAxis(axis.getValue()) && mesh.getExtents()[i] > 1)
      placement[i] = onData;
  return toAttribute(placement, mesh);
}

dist::PlacementAttr seedOf(const TaggedFunction& function, unsigned argument, dist::MeshAttr mesh) {
  const bool isState = !function.argumentTag(argument, ir::tag::state).empty();
  if (function.function().getName() != ir::function::step)
    return onDataAxes(mesh, isState ? AxisPlacement() : AxisPlacement::iteration());
  if (!function.argumentTag(argument, ir::tag::input).empty())
    return onDataAxes(mesh, AxisPlacement::shard(0));
  const bool isStop = function.argumentTag(argument, ir::tag::control) == dist::stopName;
  return onDataAxes(mesh, isStop ? AxisPlacement::partial() : AxisPlacement());
}

} // namespace titan
