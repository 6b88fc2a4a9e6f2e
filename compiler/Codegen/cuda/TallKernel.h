// The schedule of sums down tall columns: a block has up to 64 neighbouring columns, whose rows it
// deals to 32 slots. A thread keeps the sums of a slot for 8 columns. What reads a column row by
// row has a ChunkKernel.
#pragma once

#include "compiler/Codegen/cuda/BodyWriter.h"
#include "compiler/Codegen/cuda/KernelModule.h"

namespace titan::codegen::cuda {

struct TallPlan {
  llvm::SmallVector<unsigned, 4> owned;   ///< parallel dimensions, the chunked one last
  llvm::SmallVector<unsigned, 4> reduced; ///< dimensions that count rows
  int64_t chunks = 1;                     ///< of columns
  int64_t rows = 1;
  int64_t across = 1; ///< chunks of a block
  int64_t threads() const { return across * columnSlots; }
  int64_t blocks() const { return llvm::divideCeilSigned(chunks, across); }
};
/// None: the columns are short, there are passes behind the sums, or what their slots meet in is
/// larger than shared memory.
std::optional<TallPlan> planTallColumns(const LoopNest& nest);

class TallKernel : BodyWriter {
public:
  TallKernel(BodyEmitter& body, const TallPlan& plan, KernelModule& kernels)
      : BodyWriter(body), plan(plan), kernels(kernels) {}
  void emit();

private:
  llvm::SmallVector<mlir::Value> sumsOfSlot(mlir::Value slot, mlir::ValueRange start);
  void meet(mlir::ValueRange sums);
  /// Where `slot` leaves its part of sum number `sum`, a vector of `type`.
  mlir::Value place(size_t sum, mlir::Value slot, mlir::Type type);

  const TallPlan& plan;
  KernelModule& kernels;
  mlir::Value column; ///< the thread's chunk among those of its block
  mlir::Value shared;
  llvm::SmallVector<int64_t> begins; ///< bytes, of each sum in `shared`
};

} // namespace titan::codegen::cuda
