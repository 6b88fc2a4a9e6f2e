// Attention that a card's library may compute.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "runtime/program/Program.h"

#include <optional>

namespace titan::codegen::cuda {

/// The call as the job's table lists it, with the workspace that cuDNN needs at most; nothing for
/// what is generated always: other types than bf16, masks, dropout, widths and strides that are no
/// multiples of 8, heads wider than 128, and gradients over so many rows that the workspace would
/// leave no memory for the model.
std::optional<LibraryCall> libraryAttention(kernel::CallOp call);

} // namespace titan::codegen::cuda
