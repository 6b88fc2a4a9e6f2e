// Which inputs are class labels or indices of table rows.
#pragma once

#include "mlir/IR/Value.h"

namespace titan::codegen {

/// The number of classes when `input`, of integers, is compared with the coordinate along a
/// dimension of a kernel, where values outside of [0, classes) would match nothing, or names rows
/// of an embedding's table. 0: no such use.
int64_t labelClasses(mlir::Value input);

} // namespace titan::codegen
