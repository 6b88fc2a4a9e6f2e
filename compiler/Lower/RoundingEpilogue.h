// A product whose readers all round it first: the rounding, with the bias and relu before it,
// becomes the product's epilogue.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/PatternMatch.h"

namespace titan::lower {

/// Makes `call` (a matrix product without an epilogue, of f32) give bf16, if every kernel that
/// reads it begins with one and the same add of a bias of bf16, relu and rounding to bf16. The
/// readers keep the rest of their bodies and read bf16; one that did nothing else is erased. Null,
/// and nothing changed, where that does not hold.
kernel::CallOp absorbRounding(mlir::RewriterBase& rewriter, kernel::CallOp call);

} // namespace titan::lower
