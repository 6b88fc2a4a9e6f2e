// Passes of the stage *shard*.
#ifndef TITAN_SHARD_PASSES_TD
#define TITAN_SHARD_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyShard : Pass<"titan-shard-verify", "::mlir::ModuleOp"> {
  let summary = "checks that the module is the program of one rank";
  let description = [{
    - The recipe's mesh has as many ranks as the program was made for: one.
    - Every state that `@step`, `@eval` or `@predict` takes has the symbol's whole shape: nothing is local to a rank that the symbol does not say.

    Example: test/shard/verify-invalid.mlir.
  }];
}

#endif // TITAN_SHARD_PASSES_TD
