// Where a value comes in another placement than an op takes it, and the steps from one to the
// other.
#pragma once

#include "compiler/Shard/FunctionPlacements.h"

namespace titan {

/// One step, on the axes that need the same, along the same dimension.
struct ConversionStep {
  enum class Kind {
    ReduceScatter, ///< from terms to a part of their sum
    AllReduce,     ///< from terms to their sum
    TakeShard,     ///< from the whole to a part: nothing is exchanged
    AllGather,     ///< from parts to the whole
  };
  Kind kind;
  mlir::ArrayAttr axes;
  int64_t dim = -1; ///< of all but AllReduce
  ValuePlacement result;
};

/// The first step from `from` to `to`; nothing where no collective leads there. Sums to parts come
/// first, so that what is exchanged afterwards is small; gathers come last.
std::optional<ConversionStep> firstStep(const ValuePlacement& from, const ValuePlacement& to,
                                        dist::MeshAttr mesh);

/// A value, and those of its uses that take it in another placement, all in the same one.
struct Conversion {
  mlir::Value value;
  ValuePlacement taken;
  ConversionStep step;
  llvm::SmallVector<mlir::OpOperand*> uses;

  /// That of `value`.
  mlir::Block* block() const {
    mlir::Value made = value;
    return made.getParentBlock();
  }
  bool sums() const {
    return step.kind == ConversionStep::Kind::ReduceScatter ||
           step.kind == ConversionStep::Kind::AllReduce;
  }
};

/// All that `function` needs, in the order of the uses. Emits an error where no collective leads to
/// what an op takes.
llvm::FailureOr<llvm::SmallVector<Conversion>> conversionsOf(mlir::func::FuncOp function,
                                                             const FunctionPlacements& placements);

/// The parameter or other state of which `value` is a part, as itself, cast or transposed; null if
/// it is made of something else.
ir::StateOp stateOf(mlir::Value value, const FunctionPlacements& placements);

/// The name of a value for the ledger: the metric or the state that it becomes, the state that it
/// is a part of, the parameter that it updates, or the modules that made it.
std::string nameOf(const Conversion& conversion, const FunctionPlacements& placements);

/// The metric or state that `value` becomes first; empty if it becomes none.
std::string returnedName(mlir::Value value);

/// The type of what a rank has of `value` before and after `step`.
mlir::RankedTensorType typeBefore(const Conversion& conversion,
                                  const FunctionPlacements& placements);
mlir::RankedTensorType typeAfter(const Conversion& conversion,
                                 const FunctionPlacements& placements);

/// The type of all parts of `conversion` together, which divides: what a step cuts, or what it
/// joins.
mlir::RankedTensorType joinedTypeOf(const Conversion& conversion,
                                    const FunctionPlacements& placements);

/// `joined`, a result of the all_gather of `conversion`, without the padding behind its elements.
/// What is built has the path and phase of the gather, and a placement.
mlir::Value cutJoined(mlir::OpBuilder& builder, const Conversion& conversion, mlir::Value joined,
                      FunctionPlacements& placements);

/// Bytes of one value of `type`.
int64_t bytesOf(mlir::RankedTensorType type);

} // namespace titan
