// Collectives where an op takes another part of a value than it comes in.
#pragma once

#include "compiler/Shard/FunctionPlacements.h"

namespace titan {

/// Puts collectives between a value and those of its uses that take it in another placement, one
/// step of the way (Conversions.h) after the other:
///
/// - Sums, and what the update gathers: one for all values that need the same, in the order in
///   which the block makes them.
/// - What else is gathered: right before the first op that reads it (PlaceGathers.h).
/// - A part of a value that all ranks have: right before the first op that reads it.
///
/// Each collective has a remark (category `shard`) with what it exchanges, the axes, the bytes of
/// its operands and why.
///
/// Emits an error where the exchange that would be needed has no collective, or where the recipe's
/// strategy asks for none.
llvm::LogicalResult insertCollectives(mlir::func::FuncOp function, FunctionPlacements& placements,
                                      const Recipe& recipe);

} // namespace titan
