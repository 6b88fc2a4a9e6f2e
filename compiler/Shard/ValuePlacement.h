// What of a value each rank has, on each axis of the mesh.
#pragma once

#include "dialects/Dist/Dist.h"

namespace titan {

/// What of a value the ranks have that differ on one axis only.
struct AxisPlacement {
  enum class Kind {
    Replicate, ///< all of them the same
    Shard,     ///< each its part along `dim`
    Partial,   ///< each a term; the value is their sum
    Iteration, ///< in the body of a divided loop: each what its own iteration makes
  };
  Kind kind = Kind::Replicate;
  int64_t dim = -1; ///< of Shard

  static AxisPlacement shard(int64_t dim) { return {Kind::Shard, dim}; }
  static AxisPlacement partial() { return {Kind::Partial}; }
  static AxisPlacement iteration() { return {Kind::Iteration}; }
  bool isReplicate() const { return kind == Kind::Replicate; }
  bool isShard() const { return kind == Kind::Shard; }
  bool isPartial() const { return kind == Kind::Partial; }
  bool isIteration() const { return kind == Kind::Iteration; }
  bool operator==(const AxisPlacement&) const = default;
};

/// One for each axis of the mesh.
using ValuePlacement = llvm::SmallVector<AxisPlacement, 3>;

/// As an attribute, which names the axes on which the value is not replicated.
dist::PlacementAttr toAttribute(const ValuePlacement& placement, dist::MeshAttr mesh);
/// Of an attribute that names axes of `mesh`; null is replicated. Fails where it names others.
llvm::FailureOr<ValuePlacement> toPlacement(dist::PlacementAttr attribute, dist::MeshAttr mesh);

/// What of a tensor of type `whole` a rank has, with its padding: on each axis that cuts a
/// dimension ceil(extent / ranks) of it.
mlir::RankedTensorType localType(mlir::RankedTensorType whole, const ValuePlacement& placement,
                                 dist::MeshAttr mesh);

} // namespace titan
