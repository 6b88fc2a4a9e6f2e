// The placement of each value of a function, by its ops' rules.
#pragma once

#include "compiler/Shard/GradientPlacements.h"
#include "compiler/Shard/PlacementRules.h"
#include "runtime/program/Microbatches.h"

#include "llvm/ADT/DenseMap.h"

namespace titan {

/// Follows the values of one function from its arguments on.
class FunctionPlacements {
public:
  enum class Source {
    Rules,      ///< of arguments `dist.placement`, of the ops' results what the rules say
    Attributes, ///< both as attributes say; emits an error where the rules say something else
    Seeds,      ///< of arguments what the recipe divides, of the ops' results what the rules say
  };
  /// States are placed by their symbols. Emits an error where the
  /// iterations of a loop cannot be divided as its batches are.
  static llvm::FailureOr<FunctionPlacements> of(mlir::func::FuncOp function, Source source);

  const ValuePlacement& operator[](mlir::Value value) const {
    return placements_.find(value)->second;
  }
  /// What of `operand` its op takes.
  ValuePlacement taken(mlir::OpOperand& operand) const;
  /// The type of `value` as the whole job has it: before *partition* its own.
  mlir::RankedTensorType wholeType(mlir::Value value) const;
  /// Adds a value that a collective made of `from`: of the same tensor, in another placement. Its
  /// type is already the rank's.
  void define(mlir::Value value, mlir::Value from, ValuePlacement placement);
  /// Adds a value that all ranks have alike, in its own type.
  void defineWhole(mlir::Value value);
  /// Gives every value the type of what a rank has of it. Those that were defined have it.
  void localizeTypes();
  dist::MeshAttr mesh() const { return mesh_; }
  /// Those that the recipe asks for, by their depth.
  llvm::ArrayRef<MicrobatchLoop> loops() const { return loops_; }
  /// Are the iterations of `loop` divided along `axis`?
  bool isDivided(accum::LoopOp loop, unsigned axis) const;
  /// Does `op` give nested loops their batches?
  bool isBatchReshape(mlir::Operation* op) const;

private:
  FunctionPlacements(mlir::func::FuncOp function, const Recipe& recipe, Source source)
      : function_(function), mesh_(dist::meshOf(function)), source_(source),
        loops_(microbatchLoops(recipe)), isTree_(recipe.mesh.isTree()),
        gradients_(function, recipe.mesh, mesh_) {}

  llvm::LogicalResult placeArguments();
  llvm::LogicalResult visit(mlir::Operation* op);
  llvm::LogicalResult visitBatchReshape(mlir::Operation* op);
  llvm::LogicalResult visitLoop(accum::LoopOp loop);
  /// Places the arguments of the body.
  llvm::LogicalResult enterLoop(accum::LoopOp loop, unsigned axis);
  llvm::LogicalResult checkLoopEnd(accum::LoopOp loop, unsigned axis) const;
  /// Sets the placements of the op's results, after a look at its attributes.
  llvm::LogicalResult place(mlir::Operation* op, llvm::ArrayRef<ValuePlacement> results);
  AxisRule ruleAt(unsigned axis, mlir::Operation* op) const;
  /// Is it a loop inside of `loop` whose iterations are divided along `axis`?
  bool isDividedInside(accum::LoopOp loop, unsigned axis) const;
  /// Is it one around it?
  bool isDividedAround(accum::LoopOp loop, unsigned axis) const;
  AxisPlacement stackOn(unsigned axis, accum::LoopOp loop, mlir::Value row) const;
  AxisPlacement accumulatorOn(unsigned axis, accum::LoopOp loop, unsigned sum) const;
  AxisPlacement takenByLoop(unsigned axis, accum::LoopOp loop, mlir::OpOperand& operand) const;
  AxisPlacement takenByYield(unsigned axis, accum::LoopOp loop, mlir::OpOperand& operand) const;

  mlir::func::FuncOp function_;
  dist::MeshAttr mesh_;
  Source source_;
  std::vector<MicrobatchLoop> loops_;
  bool isTree_; ///< sums depend on the microbatches alone
  GradientPlacements gradients_;
  llvm::DenseMap<mlir::Value, ValuePlacement> placements_;
  llvm::DenseMap<mlir::Value, mlir::RankedTensorType> whole_; ///< of values that were defined
};

} // namespace titan
