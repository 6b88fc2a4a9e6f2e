// A kernel that adds a bias to a product or applies relu to it: both become the product's epilogue.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/PatternMatch.h"

namespace titan::lower {

/// What a kernel does to the result of `call`, and nothing else: x + bias, max(x, 0) or
/// max(x + bias, 0).
struct BiasEpilogue {
  kernel::CallOp call;
  mlir::Value bias; ///< null: none
  bool relu = false;
};

/// None where `op` does something else, where others read the product, or where it has an epilogue.
std::optional<BiasEpilogue> matchBiasEpilogue(kernel::FusedOp op);

/// The call that does what `op` did, in its place.
kernel::CallOp absorbBiasEpilogue(mlir::RewriterBase& rewriter, kernel::FusedOp op,
                                  const BiasEpilogue& epilogue);

/// `gemm` with an epilogue.
kernel::GemmAttr withEpilogue(kernel::GemmAttr gemm, bool bias, bool relu);

} // namespace titan::lower
