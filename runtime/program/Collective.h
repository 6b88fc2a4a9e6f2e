// What a collective of a program does: who takes part, what each buffer is, and how many bytes
// move. The table, the communicators and the ledger share this one definition.
#pragma once

#include "runtime/program/DType.h"
#include "runtime/program/Placement.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace titan {

enum class CollectiveKind : uint8_t {
  AllGather,     ///< each rank has a part; all get the whole
  ReduceScatter, ///< each rank has a term of the whole; each gets its part of the sum
  AllReduce,     ///< each rank has a term; all get the sum
};

/// How the terms of a sum are added. Each order gives the same bits on every rank.
enum class SumOrder : uint8_t {
  Rank, ///< x0 + x1 + ... in the order of the group
  Tree, ///< neighbours first, each leaf enters as 0 + x; the group has 2^n ranks
};

/// What ranks sum: F32, F64, I64 (which wraps around) and BF16, which is added in f32 and rounded
/// once.
bool canSum(DType dtype);

/// One tensor of a bucket as the group has it, row-major [outer, inner]: AllGather and
/// ReduceScatter cut `inner` into equal parts, one a rank of the group, in its order. So dimension
/// d is cut where `outer` is the product of the extents before d.
struct CollectivePiece {
  DType dtype = DType::F32;
  int64_t outer = 1;
  int64_t inner = 1; ///< elements; AllGather, ReduceScatter: a multiple of the group's size
  int64_t wholeBytes() const { return outer * inner * byteSize(dtype); }
  bool operator==(const CollectivePiece&) const = default;
};

/// One bucket. A group is the ranks that differ on `axes` only, in the order of their numbers.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  SumOrder order = SumOrder::Rank;
  std::vector<uint8_t> axes; ///< of Program::mesh, rising; at least one
  std::vector<CollectivePiece> pieces;
  std::string label; ///< whose tensors they are: module paths, or "loss, count, stop"
  bool operator==(const Collective&) const = default;
};

/// "all_gather", "reduce_scatter", "all_reduce".
const char* toString(CollectiveKind kind);

/// The product of the axes' ranks.
int64_t groupSize(std::span<const uint8_t> axes, std::span<const MeshAxis> mesh);
/// The number of ranks of a mesh.
int64_t rankCount(std::span<const MeshAxis> mesh);
/// "4 ranks (replicate 2 x shard 2)"; "1 rank".
std::string describeRanks(std::span<const MeshAxis> mesh);
/// Ranks are numbered row-major in the mesh: the coordinates of `rank`, one an axis.
std::vector<int64_t> coordinatesOf(int64_t rank, std::span<const MeshAxis> mesh);
/// The group of `rank`, itself included, by rising number.
std::vector<int64_t> groupOf(int64_t rank, std::span<const uint8_t> axes,
                             std::span<const MeshAxis> mesh);

/// Bytes of the buffers that one rank brings and gets, of a group of `ranks`.
int64_t sourceBytes(CollectiveKind kind, const CollectivePiece& piece, int64_t ranks);
int64_t resultBytes(CollectiveKind kind, const CollectivePiece& piece, int64_t ranks);
/// Bytes of one rank's sources, all pieces together.
int64_t payloadBytes(const Collective& collective, int64_t ranks);
/// Bytes that come to one rank from others: n(r - 1)/r of each whole operand of n bytes, twice for
/// AllReduce; the mean of the group, rounded up. The group together moves (r - 1)n, or twice that.
int64_t wireBytes(const Collective& collective, int64_t ranks);

} // namespace titan
