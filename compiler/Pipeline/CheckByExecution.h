// Checks passes by running the module before and after each of them in the reference interpreter.
#pragma once

#include "mlir/Pass/PassManager.h"

namespace titan {

/// Adds an instrumentation: each pass that claims to preserve meaning is checked by running the
/// module before and after it on the same random arguments, in f64, and results with equal tags are
/// compared. A difference is an error that names the pass. Passes that change what the module says
/// (a loss, an update, the place of random decisions) are not compared, nor are modules on buffers.
/// `mismatch` gets the name of the first pass whose result differs; it must outlive the runs.
void addExecutionCheck(mlir::PassManager& passes, std::string& mismatch);

/// Does `pass` claim that the module means the same afterwards?
bool preservesMeaning(llvm::StringRef pass);

} // namespace titan
