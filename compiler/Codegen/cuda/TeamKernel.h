// The schedule of kernels that reduce their innermost dimension: a team of threads has a row, which
// it reads chunk by chunk, and meets for each sum. With column reductions a team goes down its rows
// and each thread keeps the sums of the columns that it owns.
#pragma once

#include "compiler/Codegen/cuda/BodyWriter.h"
#include "compiler/Codegen/cuda/KeptRow.h"
#include "compiler/Codegen/cuda/KernelModule.h"

namespace titan::codegen::cuda {

struct TeamPlan {
  llvm::SmallVector<unsigned, 4> outer; ///< parallel dimensions: a team has one point of them
  llvm::SmallVector<unsigned, 4> rows;  ///< dimensions of column reductions, which a team goes down
  llvm::SmallVector<unsigned, 4> inner; ///< a row
  int64_t units = 1;                    ///< points of `outer`
  int64_t chunks = 1;                   ///< of a row
  int64_t slots = 1;                    ///< threads of a team
  int64_t teams = 1;                    ///< of a block
  int64_t threads() const { return teams * slots; }
  int64_t blocks() const { return llvm::divideCeilSigned(units, teams); }
  int64_t streams = 0; ///< ins that vary along a row
  /// Of a multiprocessor. Where threads go over a row in turns, another block shall compute while
  /// one waits for its row: with 64 registers a thread, which suffice for two streams without sums
  /// of columns.
  int64_t blocksTogether() const { return chunks > slots && rows.empty() && streams <= 2 ? 2 : 0; }
  /// Each thread has one whole chunk of its row: its values stay in registers.
  bool isExact = false;
};
/// None: reductions are over other dimensions than a row's and one further set, or what a column
/// gives is reduced again.
std::optional<TeamPlan> planTeams(const LoopNest& nest);

class TeamKernel : BodyWriter {
public:
  TeamKernel(BodyEmitter& body, const TeamPlan& plan, KernelModule& kernels, ThreadMemory& access)
      : BodyWriter(body), plan(plan), kernels(kernels), kept(body, access) {}
  void emit();

private:
  void emitTeam();
  int64_t meetingBytes() const;
  void keepRow(mlir::Value team);
  void loadRow();
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> passesOfRow();
  llvm::SmallVector<ReductionGroup> rowGroups(bool ofEachRow) const;
  llvm::SmallVector<unsigned> pointsOfRow();
  bool belongsToRow(DimSet dims) const;
  llvm::SmallVector<mlir::Value> emitRow(mlir::ValueRange columnSums);
  static mlir::Value combinedBy(kernel::ReduceOp reduce);
  void emitRowReductions(const ReductionGroup& group);
  llvm::SmallVector<mlir::Value> meet(const ReductionGroup& group, mlir::ValueRange partials);
  llvm::SmallVector<int64_t> sharedPlaces(const ReductionGroup& group) const;
  llvm::SmallVector<mlir::Value> meetWarps(const ReductionGroup& group, mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> addToColumns(mlir::ValueRange columnSums,
                                              llvm::ArrayRef<unsigned> outs);
  void writePoints(llvm::ArrayRef<unsigned> outs, mlir::ValueRange values);
  void emitColumns(mlir::ValueRange columnSums);

  /// Runs `step` for the thread's chunks in rising order, in scopes with lanes.
  llvm::SmallVector<mlir::Value> overChunks(llvm::ArrayRef<mlir::Value> wanted,
                                            mlir::ValueRange carried, Step step);
  /// The same for its chunk number `turn` alone.
  llvm::SmallVector<mlir::Value> inTurn(int64_t turn, mlir::ValueRange carried, Step step);
  /// Runs `write` in the team's first thread.
  void inFirstThread(llvm::function_ref<void()> write);
  /// Does the column reduction have a sum at each point of the row, or one?
  bool varies(kernel::ReduceOp reduce) const;
  int64_t turns() const { return llvm::divideCeilSigned(plan.chunks, plan.slots); }
  DimSet innerSet() const;

  const TeamPlan& plan;
  KernelModule& kernels;
  llvm::SmallVector<kernel::ReduceOp> columns;
  mlir::Value slot;     ///< of the thread in its team
  mlir::Value isActive; ///< the team has a unit; null: all have
  KeptRow kept;
  mlir::Value shared; ///< where warps meet; null: a team is no more than a warp
};

} // namespace titan::codegen::cuda
