// What one unit of a fused kernel does: its passes and its stores.
#pragma once

#include "compiler/Codegen/cpu/FusedKernel.h"
#include "compiler/Codegen/cpu/ReductionPass.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/PassOrder.h"

namespace titan::codegen {

/// The part of the block dimension that a unit has.
struct Block {
  unsigned dim = 0;
  mlir::Value start; ///< coordinate of its first element (an index)
  int64_t length = 0;
};

class UnitEmitter {
public:
  UnitEmitter(BodyEmitter& body, const VectorShape& shape, mlir::func::FuncOp function);

  /// In a scope that binds the parallel dimensions outside of the block. Fails with a diagnostic
  /// when intermediate results do not fit on the stack.
  mlir::LogicalResult emit(const std::optional<Block>& block);
  /// Everything that is evaluated, for hoisting.
  llvm::SmallVector<mlir::Value> roots();

private:
  mlir::LogicalResult emitReductions(llvm::ArrayRef<ReductionGroup> groups, DimSet row,
                                     llvm::ArrayRef<mlir::Value> last);
  mlir::LogicalResult emitBlock(const Block& block);
  mlir::LogicalResult emitSweep(unsigned row, const std::optional<Block>& block);
  mlir::LogicalResult emitSweptRow(unsigned row, DimSet columns,
                                   llvm::ArrayRef<std::pair<kernel::ReduceOp, const Memory*>> sums,
                                   const std::optional<Block>& block);

  llvm::SmallVector<ReductionGroup> groupsOf(llvm::function_ref<bool(const Reduction&)> wanted) {
    return groupReductions(nest, passes.bound, wanted);
  }
  /// Writes `outs`, those that walk the most dimensions first: an out may lie on an in that it
  /// walks alike, and only passes over more dimensions read that in once more.
  void emitStores(llvm::ArrayRef<unsigned> outs, const std::optional<Block>& block);
  void emitStoreGroup(llvm::ArrayRef<unsigned> outs, DimSet dims,
                      const std::optional<Block>& block);
  /// Runs `step` over `dims`, of which the block has a part.
  void overPoints(DimSet dims, const std::optional<Block>& block, llvm::ArrayRef<mlir::Value> roots,
                  llvm::function_ref<void()> step);
  void overBlock(const Block& block, int64_t longest, llvm::function_ref<void()> step);
  /// Runs `write` once among the points of the parallel dimensions that `dims` lacks.
  void onlyFirst(DimSet dims, const std::optional<Block>& block, llvm::function_ref<void()> write);

  /// The dimensions of `set` that have no coordinate yet.
  DimSet inner(DimSet set) const { return set & ~passes.bound; }
  llvm::SmallVector<unsigned> outsWhere(llvm::function_ref<bool(DimSet)> wanted);
  mlir::OperandRange yielded();

  BodyEmitter& body;
  mlir::OpBuilder& builder;
  mlir::Location loc;
  const LoopNest& nest;
  const VectorShape& shape;
  ReductionPass passes;
};

} // namespace titan::codegen
