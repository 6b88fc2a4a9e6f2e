// How often MLIR's verifier reads a module between passes.
#pragma once

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace titan {

/// Is each pass verified? It is in builds with assertions. Others verify what is printed or becomes
/// code, and the last stage of tensor ops: most of the time of a compilation would be the
/// verifier's, who reads all of the module for passes that change a little of it.
#ifdef NDEBUG
inline constexpr bool verifiesEachPass = false;
#else
inline constexpr bool verifiesEachPass = true;
#endif

/// Runs `passes` on `op`, which is verified behind the last of them, or behind each.
inline mlir::LogicalResult runVerified(mlir::PassManager& passes, mlir::Operation* op) {
  passes.enableVerifier(verifiesEachPass);
  if (failed(passes.run(op)))
    return mlir::failure();
  return mlir::success(verifiesEachPass || succeeded(mlir::verify(op)));
}

} // namespace titan
