// titan-compile as a function.
#pragma once

#include "mlir/IR/DialectRegistry.h"

#include <string>
#include <vector>

namespace titan {

/// Runs `titan-compile <arguments>`; prints errors as one line `error: ...` on stderr. Returns the
/// exit code. `more` as in CompilerContext.
int compileMain(const std::vector<std::string>& arguments, const std::string& executable,
                const mlir::DialectRegistry& more = mlir::DialectRegistry());

} // namespace titan
