// The value of a tensor of the file, made out of the states that it has pieces of.
#pragma once

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/onnx/name/Names.h"

namespace titan::frontend {

using StateValues = std::map<std::string, mlir::Value>; ///< by canonical name

/// `tensor`, of shape `file`, out of `states`: slices of them, transposed, under the file's rank,
/// and joined. Error: its pieces do not come from cuts through the whole of it.
Result<mlir::Value> asInFile(const ir::TensorBuilder& b, const NamedTensor& tensor,
                             const Shape& file, const StateValues& states);

} // namespace titan::frontend
