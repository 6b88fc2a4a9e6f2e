// Mixed precision as ops: what contractions and attention read and give is rounded to bfloat16,
// everything else stays as it is.
#pragma once

#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan {

/// Rounds in `function`, with `titan.convert` for every rounding:
/// - the f32 operands of contractions and attention. A value is rounded once, where it is defined
///   (a weight so outside of the loop over microbatches), and before broadcasts, reshapes,
///   transpositions and concatenations rather than behind them.
/// - the bias that a forward contraction's result takes up, likewise: a vector that is broadcast.
/// - the result of a contraction behind its bias and relu; attention and its gradient give bf16.
///   What is left in f32 are gradients of weights: contractions whose result leaves the block.
/// Every rounded value is widened again for those who compute in f32. Emits a remark for each
/// contraction and attention.
void roundContractions(mlir::func::FuncOp function);

} // namespace titan
