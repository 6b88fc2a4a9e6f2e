#include "runtime/program/Collective.h"

namespace titan {

const char* toString(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllReduce:
    return "all_reduce";
  }
  return "";
}

bool canSum(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64 || dtype == DType::BF16;
}

int64_t groupSize(std::span<const uint8_t> axes, std::span<const MeshAxis> mesh) {
  int64_t size = 1;
  for (uint8_t axis : axes)
    size *= mesh[axis].ranks;
  return size;
}

int64_t rankCount(std::span<const MeshAxis> mesh) {
  int64_t count = 1;
  for (const MeshAxis& axis : mesh)
    count *= axis.ranks;
  return count;
}

std::string describeRanks(std::span<const MeshAxis> mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh)
    if (axis.ranks > 1)
      axes.push_back(fmt::format("{} {}", axis.name, axis.ranks));
  if (axes.empty())
    return "1 rank";
  return fmt::format("{} ranks ({})", rankCount(mesh), fmt::join(axes, " x "));
}

std::vector<int64_t> coordinatesOf(int64_t rank, std::span<const MeshAxis> mesh) {
  std::vector<int64_t> coordinates(mesh.size());
  for (size_t axis = mesh.size(); axis-- > 0; rank /= mesh[axis].ranks)
    coordinates[axis] = rank % mesh[axis].ranks;
  return coordinates;
}

std::vector<int64_t> groupOf(int64_t rank, std::span<const uint8_t> axes,
                             std::span<const MeshAxis> mesh) {
  // The group's first rank, then every axis from the slowest on multiplies what is there.
  std::vector<int64_t> strides(mesh.size());
  int64_t stride = 1;
  for (size_t axis = mesh.size(); axis-- > 0; stride *= mesh[axis].ranks)
    strides[axis] = stride;
  const std::vector<int64_t> coordinates = coordinatesOf(rank, mesh);
  int64_t first = rank;
  for (uint8_t axis : axes)
    first -= coordinates[axis] * strides[axis];
  std::vector<int64_t> group = {first};
  for (uint8_t axis : axes) {
    std::vector<int64_t> wider;
    for (int64_t member : group)
      for (int64_t i = 0; i < mesh[axis].ranks; ++i)
        wider.push_back(member + i * strides[axis]);
    group = std::move(wider);
  }
  return group;
}

int64_t sourceBytes(CollectiveKind kind, const CollectivePiece& piece, int64_t ranks) {
  return kind == CollectiveKind::AllGather ? piece.wholeBytes() / ranks : piece.wholeBytes();
}

int64_t resultBytes(CollectiveKind kind, const CollectivePiece& piece, int64_t ranks) {
  return kind == CollectiveKind::ReduceScatter ? piece.wholeBytes() / ranks : piece.wholeBytes();
}

int64_t payloadBytes(const Collective& collective, int64_t ranks) {
  int64_t bytes = 0;
  for (const CollectivePiece& piece : collective.pieces)
    bytes += sourceBytes(collective.kind, piece, ranks);
  return bytes;
}

int64_t wireBytes(const Collective& collective, int64_t ranks) {
  int64_t whole = 0;
  for (const CollectivePiece& piece : collective.pieces)
    whole += piece.wholeBytes();
  if (collective.kind == CollectiveKind::AllReduce)
    whole *= 2;
  return (whole * (ranks - 1) + ranks - 1) / ranks;
}

} // namespace titan
