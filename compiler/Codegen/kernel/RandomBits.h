// kernel.random_half in arith ops; the bits are those of runtime/program/Random.h.
#pragma once

#include "mlir/IR/Builders.h"

#include <array>

namespace titan::codegen {

/// XXH3-64 of the 16 bytes (seed, stream): i64 from i64.
mlir::Value emitRandomKey(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value seed,
                          uint64_t stream);
/// The same for a stream that is known when the kernel runs.
mlir::Value emitRandomKey(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value seed,
                          mlir::Value stream);
/// The four words of each Philox block, in the low halves of i64. `block` is an i64 or a vector of
/// them: an element's index / 8. Element 8 * block + j has half j of them, low half of word 0
/// first.
std::array<mlir::Value, 4> emitRandomWords(mlir::OpBuilder& builder, mlir::Location loc,
                                           mlir::Value key, mlir::Value step, mlir::Value block);
/// The half (0..65535, i32) of each element. `element` is an i64 or a vector of them; `key` and
/// `step` are i64 scalars.
mlir::Value emitRandomHalf(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value key,
                           mlir::Value step, mlir::Value element);
/// The same for elements first, first + 1, ... first + length - 1, where first is a multiple of 8
/// (as is length): one Philox block serves eight elements.
mlir::Value emitRandomHalfRun(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value key,
                              mlir::Value step, mlir::Value first, int64_t length);

} // namespace titan::codegen
