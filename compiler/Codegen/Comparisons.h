// How `./job compare` judges what a card's kernel wrote beside its host code.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "runtime/program/Program.h"

namespace titan::codegen {

/// Of results whose bound is not known, a part of their largest magnitude.
inline constexpr double scaleTolerance = 0x1p-12;

/// Of a call, with operands in the order that `numbers` says (RoutineEmitter::operands).
Comparison compareRoutine(kernel::CallOp op, llvm::ArrayRef<unsigned> numbers);

/// Of a fused kernel: outs in `bounded` within their bounds, the others equal. Units are left open.
Comparison compareFused(kernel::FusedOp op, llvm::ArrayRef<unsigned> bounded);

} // namespace titan::codegen
