// What every schedule of a fused kernel does with the body: its results, and who writes them.
#pragma once

#include "compiler/Codegen/cuda/SumOrder.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/PassOrder.h"

namespace titan::codegen::cuda {

class BodyWriter {
public:
  explicit BodyWriter(BodyEmitter& body)
      : body(body), builder(body.builder), loc(body.loc), nest(body.nest) {}

protected:
  using Step = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange carried)>;

  /// The values that the kernel yields, one an out.
  mlir::OperandRange yielded();
  /// Everything that is evaluated, for hoisting.
  llvm::SmallVector<mlir::Value> roots();
  llvm::SmallVector<unsigned> outsWhere(llvm::function_ref<bool(DimSet)> wanted);

  /// Evaluates the outs at this point or these lanes, all before the first is written. Among the
  /// points of `dims` that an out's map lacks only the first writes it.
  void storeOuts(llvm::ArrayRef<unsigned> outs, DimSet dims);
  void writeOuts(llvm::ArrayRef<unsigned> outs, mlir::ValueRange values, DimSet dims);

  /// Runs `step` at every point of `dims` in order; values that do not vary there are computed
  /// before the loops. `wanted` is what the step evaluates.
  llvm::SmallVector<mlir::Value> overPoints(llvm::ArrayRef<unsigned> dims,
                                            llvm::ArrayRef<mlir::Value> wanted,
                                            mlir::ValueRange carried, Step step);

  /// The first `length` lanes of a chunk of `dim`.
  llvm::SmallVector<mlir::Value> onLanes(unsigned dim, mlir::Value chunk, int64_t length,
                                         mlir::ValueRange carried, Step step);

  /// The lanes of chunk number `chunk` of `dim`: a step for a whole chunk, another for the shorter
  /// last one.
  llvm::SmallVector<mlir::Value> inLanes(unsigned dim, mlir::Value chunk, mlir::ValueRange carried,
                                         Step step);
  /// The lanes of chunk `number` of `dims` (outermost first), whose innermost one is cut into
  /// chunks.
  llvm::SmallVector<mlir::Value> inChunk(llvm::ArrayRef<unsigned> dims, mlir::Value number,
                                         mlir::ValueRange carried, Step step);

  /// carried = condition ? then() : carried, where a null condition holds.
  llvm::SmallVector<mlir::Value> when(mlir::Value condition, mlir::ValueRange carried,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>()> then);

  mlir::Value combineTerm(kernel::ReduceOp reduce, mlir::Value sum, mlir::Value term);
  /// The first `length` lanes of `sum`.
  mlir::Value firstLanes(mlir::Value sum, int64_t length);
  /// Of the `sums` of a chunk of columns those at the lanes of the scope; one, where they do not
  /// vary along these.
  mlir::Value sumOfChunk(kernel::ReduceOp column, mlir::Value sums);
  mlir::Value identity(kernel::ReduceOp reduce, int64_t length);
  llvm::SmallVector<int64_t> extentsOf(llvm::ArrayRef<unsigned> dims) const;

  BodyEmitter& body;
  mlir::OpBuilder& builder;
  mlir::Location loc;
  const LoopNest& nest;
};

} // namespace titan::codegen::cuda
