// The schedule of transposing kernels: nothing is reduced, and the neighbours of some operands lie
// along another dimension than those of the rest. A block has a tile of both dimensions. Operands
// whose neighbours lie across the lanes go through shared memory, so that each side of the tile is
// read and written along its own neighbours.
#pragma once

#include "compiler/Codegen/cuda/BodyWriter.h"
#include "compiler/Codegen/cuda/KernelModule.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "compiler/Codegen/cuda/ThreadMemory.h"

#include "llvm/ADT/MapVector.h"

namespace titan::codegen::cuda {

struct TileSide {
  unsigned dim = 0;
  int64_t extent = 1; ///< of the dimension
  int64_t length = 1; ///< points of a tile, a power of two of at least `chunkLength`
  int64_t tiles() const { return llvm::divideCeilSigned(extent, length); }
  int64_t chunks() const { return length / chunkLength; }
  bool isExact() const { return extent % length == 0; }
};

struct TilePlan {
  TileSide lane;   ///< the body is computed in chunks along it
  TileSide across; ///< neighbours of staged operands lie along it
  llvm::SmallVector<unsigned, 4> others;
  llvm::SmallVector<unsigned, 4> ins, outs; ///< those that are staged
  int64_t points = 1;                       ///< of the other dimensions

  int64_t units() const { return lane.length * across.length / chunkLength; }
  int64_t threads() const { return std::min(mostThreads, units()); }
  int64_t blocks() const { return points * lane.tiles() * across.tiles(); }

  static constexpr int64_t mostThreads = 256;
};
/// None: something is reduced, no operand's neighbours lie across the lanes, or the two dimensions
/// are so short that the neighbours of a chunk share lines anyway.
std::optional<TilePlan> planTiles(const LoopNest& nest);

class TileKernel : BodyWriter {
public:
  TileKernel(BodyEmitter& body, const TilePlan& plan, KernelModule& kernels, ThreadMemory& access)
      : BodyWriter(body), plan(plan), kernels(kernels), access(access), thread(builder, loc) {}
  void emit();

private:
  using Tiles = llvm::SmallVector<Memory, 4>;

  void compute(const Tiles& outs);
  /// Shared memory for the tile of each of these operands.
  Tiles placeTiles(llvm::ArrayRef<unsigned> operands, llvm::ArrayRef<Access> accesses);
  void overTile(const TileSide& along, const TileSide& beside, llvm::function_ref<void()> step);

  const TilePlan& plan;
  KernelModule& kernels;
  ThreadMemory& access;
  ThreadBuilder thread;
  llvm::SmallMapVector<unsigned, mlir::Value, 2> firstChunk; ///< of the tile, along each side
};

} // namespace titan::codegen::cuda
