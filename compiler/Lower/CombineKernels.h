// Equal kernels become one.
#pragma once

#include "compiler/Lower/KnownKernels.h"

namespace titan::lower {

/// Replaces each op of `block`, and of blocks in it, by an equal one before it: the optimizer's
/// scalars of all parameters of a group, tables, empty tensors. Bodies of kernels stay as they are;
/// `kernels` numbers them.
void combineEqual(mlir::RewriterBase& rewriter, KnownKernels& kernels, mlir::Block& block);

/// Does so with the ops of a kernel's body, without those that nothing reads. MLIR's CSE gives the
/// same at several times the cost.
void simplifyBody(mlir::RewriterBase& rewriter, mlir::Block& body);

} // namespace titan::lower
