// What kernel.call calls, on tensors.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "dialects/Kernel/Kernel.h"

namespace titan::interpreter {

/// Sets the results of `op`. Emits an error for a routine that has no meaning here.
llvm::LogicalResult callRoutine(kernel::CallOp op, Frame& frame);

} // namespace titan::interpreter
