// The order in which a step runs with some of its values computed twice, and what is live when.
#pragma once

#include "dialects/Titan/Titan.h"

#include "llvm/ADT/BitVector.h"

#include <vector>

namespace titan::schedule {

/// A value that will have a buffer. Values that *lower* computes inside of their readers have none
/// (a pointwise op with one reader, broadcasts, views): who reads them reads what they are made of.
struct Storage {
  mlir::Value value;
  int64_t bytes = 0;
  int node = -1;               ///< the op that makes it; -1: a loop sums or stacks in it
  int loop = -1;               ///< of the latter: the loop
  bool isRecomputable = false; ///< made by the forward pass, read by the backward pass
  bool isPassing = false;      ///< made and read by the forward pass only: in no chain it is kept
  bool isGradient = false;     ///< made by the backward pass, read by the update
};

/// An op that will be kernels of its own; numbers are those of storages.
struct Node {
  mlir::Operation* op;
  llvm::SmallVector<int, 4> reads, writes;
  llvm::SmallVector<int, 4> overwritable; ///< of `reads`: a result may take their place
  bool isLate = false;                    ///< backward or update: sees recomputed values
  int loop = -1;                          ///< the innermost around it; -1: none
  int64_t cost = 0, flops = 0;
};

/// A loop of the step, numbered from the outside in.
struct Loop {
  int outer = -1; ///< the loop around it; -1: none
};

/// The step with some values computed twice.
struct Timeline {
  struct Step {
    int node;
    bool isRecomputed;
  };
  std::vector<Step> steps;
  std::vector<int64_t> live; ///< bytes at each step
  /// Per storage, and then per recomputed storage: first and last step; -1 if it does not occur.
  std::vector<int> first, last;
  int64_t cost = 0, flops = 0; ///< of what is computed again

  int64_t peak() const;
  int peakStep() const;
  /// What exceeds `target` bytes, summed over the ops of the step; what is computed again before an
  /// op counts by its highest step, so that recomputation does not look worse for having more
  /// steps.
  double excess(int64_t target) const;
};

/// `evicted`, one bit a storage: these are dropped after their last reader of the forward pass,
/// and computed again before their first reader of the backward pass.
Timeline makeTimeline(llvm::ArrayRef<Node> nodes, llvm::ArrayRef<Storage> storages,
                      llvm::ArrayRef<Loop> loops, const llvm::BitVector& evicted);

} // namespace titan::schedule
