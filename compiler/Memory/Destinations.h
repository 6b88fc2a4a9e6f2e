// Which values of a block may be written where they belong at its end, so that no copy is needed.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace titan::memory {

/// Where a value belongs at the end of its block: the buffer of a state, of an accumulator, of a
/// metric or an output.
struct Slot {
  mlir::Value buffer;
  mlir::Value old; ///< the tensor whose value the buffer holds before; null for metrics and outputs
  bool isState = false;
};

/// A value that leaves its block.
struct Exit {
  mlir::Value value;
  Slot slot;
};

/// Adds to `destinations` the values of `block` that may be written into their slots at once:
/// `exits`, and what becomes one of them through reshapes, kernels that continue a value, and
/// loops' accumulators.
void chooseDestinations(mlir::Block& block, llvm::ArrayRef<Exit> exits,
                        llvm::DenseMap<mlir::Value, Slot>& destinations);

} // namespace titan::memory
