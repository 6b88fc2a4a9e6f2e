// Collectives where an op takes another part of a value than it comes in.
#pragma once

#include "compiler/Shard/FunctionPlacements.h"

namespace titan {

/// Puts a collective between a value and those of its uses that take it in another placement: one
/// for all values that need the same, in the order in which the block makes them. Each has a remark
/// (category `shard`) with what it sums, the axes, the bytes and why.
///
/// Emits an error where the exchange that would be needed has no collective.
llvm::LogicalResult insertCollectives(mlir::func::FuncOp function,
                                      const FunctionPlacements& placements);

} // namespace titan
