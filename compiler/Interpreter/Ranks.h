// The ranks of a mesh, side by side: each runs a program of its own data, and they meet at the
// collectives.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "dialects/Dist/Dist.h"
#include "runtime/program/Placement.h"
#include "llvm/ADT/MapVector.h"

#include <memory>

namespace titan::interpreter {

using Tensors = llvm::SmallVector<Tensor>;

class Meeting;

/// One of the ranks, as the ops of dist see it.
class Rank {
public:
  int64_t number() const { return number_; }
  llvm::ArrayRef<int64_t> coordinates() const { return coordinates_; }
  /// The position on `axis`, which is one of the mesh's.
  int64_t coordinateOn(llvm::StringRef axis) const;
  /// The part of `whole` along `dim` that this rank has of its group on `axes`.
  Tensor shardOf(const Tensor& whole, mlir::ArrayAttr axes, int64_t dim) const;

  /// What this rank gets from `collective`, one op, to which it brings `operands`. Like the two
  /// below it fails where ranks do not meet, which runRanks() reports.
  mlir::FailureOr<Tensors> exchange(mlir::Operation* collective, Tensors operands, Engine engine);
  llvm::LogicalResult start(dist::StartOp start, Tensors ins);
  mlir::FailureOr<Tensors> wait(dist::WaitOp wait, Engine engine);

private:
  friend class Meeting;
  Rank(Meeting& meeting, int64_t number);

  Meeting& meeting_;
  int64_t number_;
  std::vector<int64_t> coordinates_;
  /// What all ranks brought to the collectives that are not awaited yet.
  llvm::MapVector<mlir::Operation*, std::shared_ptr<const std::vector<Tensors>>> started_;
};

/// Runs `program` once for every rank of `mesh`. They take turns: each runs up to the next
/// collective or half of one, and all go on when every rank is at the same. Emits an error that
/// names both ops, or the one and the rank that has ended, where they are not.
llvm::LogicalResult runRanks(std::span<const MeshAxis> mesh,
                             llvm::function_ref<llvm::LogicalResult(Rank&)> program);

/// The axes of a module's mesh; none where it has no mesh.
std::vector<MeshAxis> meshAxesOf(mlir::Operation* op);

} // namespace titan::interpreter
