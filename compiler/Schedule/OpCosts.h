// What the stage needs to know of an op: is it a kernel of its own, and what does it cost to
// compute again.
#pragma once

#include "compiler/Support/MachineModel.h"
#include "dialects/Titan/Titan.h"

namespace titan::schedule {

/// Bytes of a tensor of `type` in the arena, without padding.
int64_t bytesOf(mlir::Type type);

/// What CostedOpInterface says of `op`; an op without it is a kernel of its own.
ir::Work workOf(mlir::Operation* op);

/// A view, a mark or a constant: makes no value of its own (reshape, barrier).
bool isView(mlir::Operation* op);

/// Evaluates each element of its result by itself, so that *lower* can compute it inside of the
/// kernel that reads it: elementwise ops, broadcasts, dropout, iota.
bool isPointwise(mlir::Operation* op);

/// Multiply-adds of products count as two, other ops as one per element read or written.
int64_t flopsOf(mlir::Operation* op);

/// The time of `op` in multiples of the time of one floating-point operation: its arithmetic, or
/// its bytes at the machine's balance, whichever takes longer.
int64_t costOf(mlir::Operation* op, const MachineModel& machine);

} // namespace titan::schedule
