// What a rank gets from a collective.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "compiler/Interpreter/Ranks.h"

namespace titan::interpreter {

/// A group of ranks that exchange something, and the position of one of them in it.
struct Group {
  std::vector<int64_t> ranks; ///< in the order of the group
  int64_t position = 0;
};

/// The group of `rank` on `axes`, names of axes of `mesh`.
Group groupAt(int64_t rank, mlir::ArrayAttr axes, std::span<const MeshAxis> mesh);

/// The part of `whole` along `dim` that is that of the group's position.
Tensor shardOf(const Tensor& whole, int64_t dim, const Group& group);

/// What `rank` gets from `collective`, one op or its first half, where rank r brings terms[r].
/// Sums are added one after the other (f32 and f64 rounded as `engine` says, bf16 in f32 and
/// rounded at the end), or neighbours first with each leaf as 0 + x.
Tensors resultsOf(mlir::Operation* collective, llvm::ArrayRef<Tensors> terms, int64_t rank,
                  std::span<const MeshAxis> mesh, Engine engine);

} // namespace titan::interpreter
