// An MLIR context set up as every tool needs it: dialects and interface models loaded, diagnostics
// collected into Errors, remarks and pass control by name.
#pragma once

#include "runtime/program/Error.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"

#include <string>
#include <vector>

namespace titan {

class CompilerContext {
public:
  /// `more`: dialects of other libraries, whose ops say by their interfaces what they are.
  explicit CompilerContext(const mlir::DialectRegistry& more = mlir::DialectRegistry());

  mlir::MLIRContext& context() { return context_; }

  /// Passes with these names are skipped from now on. Usage when a name is no registered pass, or
  /// one that the pipeline cannot do without.
  Status disablePasses(const std::vector<std::string>& names);
  /// Prints remarks whose category matches `pattern` on stderr.
  Status enableRemarks(const std::string& pattern);

  /// What `failed` of a pass or a parser means to the user: the first error collected since the
  /// last call.
  Error takeError(ErrorCode code);

  /// The one that takeError will report; empty if there is none.
  std::string firstError() const { return errors_.empty() ? std::string() : errors_.front(); }

private:
  mlir::MLIRContext context_;
  std::vector<std::string> errors_;
};

} // namespace titan
