// The plan of a module that is not there yet.
#pragma once

#include "compiler/Schedule/FitMemory.h"

namespace titan {

/// Runs the stages behind *schedule* up to *plan* on a copy and returns the size of its arena. The
/// copy lives in a context of its own: what those stages remark is said once, when they run for
/// good. `memory.limit` does not apply to it. Fails with a diagnostic on `module` if a stage does.
/// The passes named in `disabled` are skipped, as they will be when the stages run.
mlir::FailureOr<int64_t> measurePlan(mlir::ModuleOp module,
                                     llvm::ArrayRef<std::string> disabled = {});

} // namespace titan
