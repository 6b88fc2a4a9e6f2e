// The placement of each value of a function, by its ops' rules.
#pragma once

#include "compiler/Shard/GradientPlacements.h"
#include "compiler/Shard/PlacementRules.h"

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
  /// Gives every value the type of what a rank has of it. Those that were defined have it.
  void localizeTypes();
  dist::MeshAttr mesh() const { return mesh_; }

private:
  FunctionPlacements(mlir::func::FuncOp function, const MeshRecipe& recipe, Source source)
      : function_(function), mesh_(dist::meshOf(function)), source_(source),
        gradients_(function, recipe, mesh_) {}

  llvm::LogicalResult placeArguments();
  llvm::LogicalResult visit(mlir::Operation* op);
  llvm::LogicalResult visitLoop(accum::LoopOp loop);
  llvm::LogicalResult visitLoop(accum::LoopOp loop, unsigned axis);
  llvm::LogicalResult checkLoopEnd(accum::LoopOp loop, unsigned axis);
  /// Sets the placements of the op's results, after a look at its attributes.
  llvm::LogicalResult place(mlir::Operation* op, llvm::ArrayRef<ValuePlacement> results);
  AxisRule ruleAt(unsigned axis, mlir::Operation* op) const;
  /// `divided` on the axes along which the iterations of `loop` are divided.
  ValuePlacement takenByLoop(accum::LoopOp loop, AxisPlacement divided) const;
  bool isDivided(accum::LoopOp loop, unsigned axis) const;

  mlir::func::FuncOp function_;
  dist::MeshAttr mesh_;
  Source source_;
  GradientPlacements gradients_;
  llvm::DenseMap<mlir::Value, ValuePlacement> placements_;
  llvm::DenseMap<mlir::Value, mlir::RankedTensorType> whole_; ///< of values that were defined
};

} // namespace titan
