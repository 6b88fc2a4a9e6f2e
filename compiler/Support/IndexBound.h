// What the values of an integer input may be.
#pragma once

#include "mlir/IR/Value.h"

namespace titan {

/// The number of classes or rows that `input` chooses from: targets of a cross entropy, indices of
/// an embedding. The largest of several, 0 for none. Follows ops that only move elements or pick
/// some of them, and the slices of a microbatch loop.
int64_t indexBound(mlir::Value input);

} // namespace titan
