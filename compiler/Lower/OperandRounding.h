// A weight that only products read, rounded: they round it themselves while they pack it.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "mlir/IR/PatternMatch.h"

namespace titan::lower {

/// `cast` rounds an f32 tensor to bf16. If all its readers are matrix products of its block that
/// take it as B and give bf16, they take the f32 tensor instead, and the kernel is erased: reading
/// four bytes twice costs less than reading four, writing two and reading those twice. False, and
/// nothing changed, where that does not hold or where more than `mostTileRows` rows of tiles would
/// each round it: a few read a panel at about the same time, on several threads.
bool absorbOperandRounding(mlir::RewriterBase& rewriter, kernel::FusedOp cast,
                           int64_t mostTileRows);

} // namespace titan::lower
