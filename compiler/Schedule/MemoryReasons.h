// Why a step does not fit.
#pragma once

#include "compiler/Support/MachineModel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace titan::schedule {

/// Bytes of what lives outside of a function's temporaries: states, inputs and outputs, constants.
int64_t permanentBytes(mlir::ModuleOp module);

/// Emits the error on `module`: what is live at the peak of `step` (with everything recomputed that
/// can be), the largest first and no more than explains the excess, and what would help. `needed`
/// are the bytes of the smallest plan found.
void refuseLimit(mlir::ModuleOp module, mlir::func::FuncOp step, const MachineModel& machine,
                 int64_t limit, int64_t needed, int64_t recomputed, bool mayRecompute);

} // namespace titan::schedule
