// What is live when in a training step, before there are kernels: the estimate by which *schedule*
// decides what to compute twice.
#pragma once

#include "compiler/Schedule/Timeline.h"
#include "compiler/Support/MachineModel.h"
#include "dialects/Accum/Accum.h"

namespace titan::schedule {

class MemoryModel {
public:
  MemoryModel(mlir::func::FuncOp step, const MachineModel& machine);

  llvm::ArrayRef<Storage> storages() const { return storages_; }
  mlir::Operation* opOf(int node) const { return nodes_[node].op; }

  /// See `makeTimeline`.
  Timeline run(const llvm::BitVector& evicted) const {
    return makeTimeline(nodes_, storages_, loops_, evicted);
  }
  Timeline run() const { return run(llvm::BitVector(storages_.size())); }

  /// The live storages at a step; recomputed ones included, once.
  llvm::SmallVector<int> liveAt(const Timeline& timeline, int step) const;

private:
  MachineModel machine_;
  std::vector<Node> nodes_;
  std::vector<Storage> storages_;
  std::vector<Loop> loops_;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int, 2>> reads_; ///< what reading a value reads

  /// `loop`: the innermost around it, or -1.
  void addBlock(mlir::Block& block, int loop);
  void addLoop(accum::LoopOp op, int outer);
  void addOp(mlir::Operation* op, int loop);
  void classify();
};

/// Is `op` computed inside of the kernels that read it?
bool isVirtual(mlir::Operation* op);

} // namespace titan::schedule
