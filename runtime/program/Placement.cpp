#include "runtime/program/Placement.h"

#include <algorithm>

namespace titan {

namespace {

int64_t partOf(int64_t extent, int64_t ranks) { return extent / ranks + (extent % ranks != 0); }

} // namespace

std::optional<Shape> localShape(const Shape& global, const Placement& placement,
                                std::span<const MeshAxis> mesh) {
  Shape local = global;
  for (size_t i = 0; i < placement.size(); ++i) {
    const Cut& cut = placement[i];
    const bool repeated = std::ranges::any_of(placement.begin(), placement.begin() + i,
                                              [&](const Cut& c) { return c.axis == cut.axis; });
    if (repeated || cut.axis >= mesh.size() || cut.dim < 0 ||
        cut.dim >= static_cast<int64_t>(global.size()) || cut.outer != 1)
      return std::nullopt;
    local[cut.dim] = partOf(local[cut.dim], mesh[cut.axis].ranks);
  }
  return local;
}

std::vector<Box> boxesOf(const Shape& global, const Placement& placement,
                         std::span<const MeshAxis> mesh, std::span<const int64_t> coordinates) {
  Box box{Shape(global.size(), 0), global};
  Shape padded = global; // the extents of the part that the next cut divides
  for (const Cut& cut : placement) {
    const int64_t part = partOf(padded[cut.dim], mesh[cut.axis].ranks);
    const int64_t begin = part * coordinates[cut.axis];
    int64_t& valid = box.extent[cut.dim];
    valid = std::clamp<int64_t>(valid - begin, 0, part);
    box.at[cut.dim] += begin;
    padded[cut.dim] = part;
    if (valid == 0)
      return {};
  }
  return {box};
}

} // namespace titan
