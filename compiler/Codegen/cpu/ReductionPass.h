// The loops inside of a unit: passes that reduce, and passes over points.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Codegen/cpu/ReductionOrder.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/EqualReductions.h"

#include <deque>

namespace titan::codegen {

class ReductionPass {
public:
  ReductionPass(BodyEmitter& body, const VectorShape& shape, mlir::func::FuncOp function);

  /// Dimensions that have coordinates, or a block of them: loops run over the others.
  DimSet bound;

  /// Computes reductions that run over the same dimensions and wait for nothing more, and hands the
  /// results to the body emitter. `alongside`, if any, runs at every point (or vector) of the pass,
  /// when all that the reductions read there has been read. Fails with a diagnostic when results do
  /// not fit on the stack.
  mlir::LogicalResult emit(llvm::ArrayRef<const Reduction*> group,
                           llvm::function_ref<void()> alongside);

  /// Stack for `value` (of the body) at all points of `dims`; fails with a diagnostic when there is
  /// not enough.
  mlir::FailureOr<const Memory*> allocate(mlir::Value value, DimSet dims);
  /// The same for `length` points of `dim` from coordinate `start` on.
  mlir::FailureOr<const Memory*> allocateBlock(mlir::Value value, unsigned dim, mlir::Value start,
                                               int64_t length);

  using Step = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange carried)>;
  /// Runs `step` for vectors of `length` lanes over [low, high) of `dim`: low is a multiple of
  /// length, high one too or the extent, whose remainder is done by a shorter or a masked vector.
  llvm::SmallVector<mlir::Value> overLanes(unsigned dim, mlir::Value low, mlir::Value high,
                                           int64_t length, mlir::ValueRange carried, Step step);
  /// Runs `step` at every point of `dims`, as vectors along the innermost one unless the scope has
  /// lanes already. `roots` are the values that it asks for.
  void overPoints(DimSet dims, int64_t longest, llvm::ArrayRef<mlir::Value> roots, Step step);

private:
  /// The loops of one group around the choice of lane or column order.
  struct Group;
  mlir::LogicalResult emitTogether(llvm::ArrayRef<const Reduction*> group,
                                   llvm::function_ref<void()> alongside);
  /// Sums of rows that are equal, one after the other, in a loop over them.
  mlir::LogicalResult emitEqual(const EqualReductions& equal);
  llvm::SmallVector<mlir::Value> reduce(Group& group, llvm::ArrayRef<unsigned> over);
  llvm::SmallVector<mlir::Value> accumulate(const Group& group, llvm::ArrayRef<unsigned> over,
                                            bool alone, mlir::ValueRange totals);
  llvm::SmallVector<mlir::Value> partialSums(const Group& group, unsigned dim, mlir::Value low,
                                             mlir::Value high);
  llvm::SmallVector<mlir::Value> identities(const Group& group);
  void overScalars(llvm::ArrayRef<unsigned> dims, llvm::ArrayRef<mlir::Value> roots,
                   llvm::function_ref<void()> step);
  mlir::FailureOr<mlir::Value> allocateBytes(mlir::Value value, int64_t elements);
  mlir::Value allocateStack(mlir::Type type, int64_t elements);
  mlir::Value storeNumbers(llvm::ArrayRef<unsigned> numbers);
  mlir::Value selectOperand(mlir::Value table, mlir::Value index);

  BodyEmitter& body;
  mlir::OpBuilder& builder;
  mlir::Location loc;
  const LoopNest& nest;
  const VectorShape& shape;
  mlir::func::FuncOp function;
  int64_t allocated = 0;     ///< bytes of stack
  std::deque<Memory> memory; ///< on the stack; addresses stay
};

} // namespace titan::codegen
