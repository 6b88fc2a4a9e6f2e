// Do two modules mean the same? What every pass that claims to preserve meaning is checked by.
#pragma once

#include "compiler/Interpreter/RandomArguments.h"
#include "mlir/IR/BuiltinOps.h"

namespace titan::interpreter {

struct EquivalenceOptions {
  Engine engine = Engine::F64;
  RandomOptions random;
  /// |a - b| <= tolerance * max(1, largest magnitude of the tensor). 1e-9 admits sums in another
  /// order in f64. 0: the same bits, so that -0 is not +0.
  double tolerance = 1e-9;
  /// Results and arguments are matched by their tags where both functions have them, else by
  /// position. Results that only one of the two has are then ignored if this is set, and an error
  /// otherwise.
  bool commonResultsOnly = false;
  /// `after` may have results that `before` has not; it still must have all of those.
  bool newResults = false;
};

/// Runs each function that both modules have on the same random arguments, one that is the program
/// of a rank on all ranks of its mesh (ShardedRun), and compares the results of the whole job:
/// their types exactly, floats by tolerance (NaN equals NaN), integers and booleans exactly. Where
/// ranks of `after` hold padding, its results must not depend on what that is. Emits an error on
/// the function of `after` with the first element that differs, or if no function is in both.
llvm::LogicalResult checkEquivalent(mlir::ModuleOp before, mlir::ModuleOp after,
                                    const EquivalenceOptions& options = {});

/// Compares two tensors likewise; the message says what differs, empty: nothing.
std::string describeDifference(const Tensor& before, const Tensor& after, double tolerance);

} // namespace titan::interpreter
