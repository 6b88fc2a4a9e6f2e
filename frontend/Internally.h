// Errors of MLIR that are ours.
#pragma once

#include "runtime/program/Error.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace titan::frontend {

/// Runs `action` on what a frontend made. Where it fails, that is a bug (Internal): "`what`: the
/// errors that it reported". Remarks go to the user as they would.
inline Status internally(mlir::MLIRContext& context, const std::string& what,
                         llvm::function_ref<llvm::LogicalResult()> action) {
  std::string messages;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return llvm::failure();
    messages += (messages.empty() ? "" : "; ") + diagnostic.str();
    return llvm::success();
  });
  if (failed(action()))
    return Error::internal("{}: {}", what, messages);
  return {};
}

} // namespace titan::frontend
