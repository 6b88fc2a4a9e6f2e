// How far two machines that evaluate one kernel.fused may come apart, as a kernel of its own:
// beside each value of the body stands a bound of |a - b|, where a and b are what the two find for
// it (running error analysis: Wilkinson, Rounding Errors in Algebraic Processes, 1963; Higham,
// Accuracy and Stability of Numerical Algorithms, 3.3).
//
// Both read the same inputs, and round arithmetic alike: what is computed from inputs by additions,
// products, divisions and roots has the same bits. They part where a sum is taken in another order,
// or in functions (exp, tanh), and from there on the bound follows the data.
#pragma once

#include "dialects/Kernel/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace titan::codegen {

/// Of a sum, times the sum of its terms' magnitudes. Equal terms, as a gradient behind a mean has,
/// round in one direction: half a unit in the last place each along a chain of additions. No
/// schedule has longer chains than 512, so it is 2^-15 from there on; 2^-20 for few terms; and
/// 2^-32 a term for very many.
double sumTolerance(int64_t terms);

struct ErrorBounds {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< that `op` stands in
  /// The kernel with an out of f32 more for each out in `bounded`, in their order: of the same
  /// shape and through the same map, it gets the bound of the element. Infinite where nothing is
  /// known. Null where `bounded` is empty.
  kernel::FusedOp op;
  /// The outs that may differ at all; others have the same bits.
  llvm::SmallVector<unsigned> bounded;
};

/// `op` is on buffers.
ErrorBounds boundErrors(kernel::FusedOp op);

} // namespace titan::codegen
