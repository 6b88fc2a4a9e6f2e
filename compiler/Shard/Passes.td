// Passes of the stage *shard*.
#ifndef TITAN_SHARD_PASSES_TD
#define TITAN_SHARD_PASSES_TD

include "dialects/PassFacts.td"

def CountFlops : TitanPass<"titan-shard-count-flops", "::mlir::ModuleOp"> {
  let summary = "notes how many FLOP the model itself asks for in each function";
  let description = [{
    Each function gets `titan.model_flops`: the FLOP of its products and attention (`Costed`), forward and backward, times the iterations of the loops around them; none of
    phase update. It stands before ranks divide the work and *schedule* computes some of it again, so it is the model's, however the job runs. What the
    function carried before is replaced.

    ```mlir
    func.func @step(...) {
      %s = accum.loop %i in 3 running ... {
        %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
    // becomes
    func.func @step(...) attributes {titan.model_flops = 384 : i64} {
    ```

    Example: test/shard/count-flops.mlir.
  }];
}

def FoldContractions : TitanPass<"titan-shard-fold-contractions", "::mlir::ModuleOp"> {
  let summary = "makes the sum of weight gradients and their accumulator a chain of operands `acc`";
  let facts = [MovesRounding];
  let description = [{
    Before: the loop's body adds a term to each accumulator, and what is partial on a rank is a term of its own. After: the module that *schedule* takes.

    A parameter's gradient is a sum of terms: one for each use of the parameter (a tied table has its look-up and the head's product), and the
    accumulator of the loop. Ops that can add to an operand (`Accumulating`: `titan.contract`, `titan.embedding_grad`) and that nothing else uses take what has been summed before them as their operand
    `acc`, in the order in which they are computed; other terms are added where they are computed. So no term has a buffer of its own, and the accumulator is
    updated in place by each. With a single term the roundings stay those of the addition; with several the order of the sum is fixed here.

    ```mlir
    %g = titan.contract %dy, %x batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %h = titan.embedding_grad %dx, %ids rows 4 : (tensor<8x2xf32>, tensor<8xi64>) -> tensor<4x2xf32>
    %term = titan.add %g, %h : tensor<4x2xf32>
    %next = titan.add %a, %term : tensor<4x2xf32>
    // becomes
    %g = titan.contract %dy, %x acc %a batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %next = titan.embedding_grad %dx, %ids acc %g rows 4 : (tensor<8x2xf32>, tensor<8xi64>, tensor<4x2xf32>) -> tensor<4x2xf32>
    ```

    Example: test/shard/fold-contractions.mlir.
  }];
}

def VerifyShard : TitanPass<"titan-shard-verify", "::mlir::ModuleOp"> {
  let summary = "checks that the module is the program of one rank";
  let description = [{
    - The recipe's mesh has as many ranks as the program was made for: one.
    - Every state that a function takes or returns has the local type: the part that the symbol's placement gives a rank, by `localShape` of
      runtime/program/Placement.h. Nothing is local to a rank that the symbol does not say.
    - The loops of `@step` are one chain, and run the microbatches of one data rank.

    Example: test/shard/verify-invalid.mlir.
  }];
}

#endif // TITAN_SHARD_PASSES_TD
