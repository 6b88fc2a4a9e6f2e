// Passes of the stage *schedule*.
#ifndef TITAN_SCHEDULE_PASSES_TD
#define TITAN_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifySchedule : Pass<"titan-schedule-verify", "::mlir::ModuleOp"> {
  let summary = "checks that each step runs forward, backward, update";
  let description = [{
    The order of the ops is the order of the commands from here on.

    - In `@step` no op of phase forward or backward follows one of phase update: a snapshot of the state may be taken until the first command of phase update.
    - The microbatch loop holds no op of phase update.
  }];
}

#endif // TITAN_SCHEDULE_PASSES_TD
