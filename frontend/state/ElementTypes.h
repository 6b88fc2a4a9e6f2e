// Element types as files name them and as MLIR has them.
#pragma once

#include "runtime/program/DType.h"

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace titan::frontend {

mlir::Type elementTypeOf(mlir::MLIRContext* context, DType dtype);
std::optional<DType> dtypeOf(mlir::Type element);

} // namespace titan::frontend
