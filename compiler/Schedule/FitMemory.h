// How *schedule* asks how large the plan of a module would be.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace titan {

/// The bytes of the arena that the stages *lower* and *plan* would give `module`, which it leaves
/// as it is. Null where only the estimate is to be had.
using MeasurePlan = std::function<mlir::FailureOr<int64_t>(mlir::ModuleOp module)>;

/// Of a module that was refused: the bytes of the smallest plan that was found.
inline constexpr llvm::StringLiteral smallestPlanTag = "titan.smallest_plan";

} // namespace titan
