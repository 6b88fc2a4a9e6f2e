// Which inputs are class labels.
#pragma once

#include "mlir/IR/Value.h"

namespace titan::codegen {

/// The number of classes when `input`, of integers, is only compared with the coordinate along a
/// dimension of a kernel: values outside of [0, classes) would match nothing there. 0: no such use.
int64_t labelClasses(mlir::Value input);

} // namespace titan::codegen
