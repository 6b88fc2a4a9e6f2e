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

def SeedPlacements : TitanPass<"titan-shard-seed-placements", "::mlir::ModuleOp"> {
  let summary = "says what of the arguments of @step each rank has";
  let description = [{
    Before: a module of the whole job. After, where the recipe has more than one rank:

    - the module has `dist.mesh`, the recipe's mesh, and `mesh.sync` of its recipe is no longer "auto": under ddp it is "deferred";
    - the inputs of `@step` are cut along their first dimension, that of the microbatches, on every data axis of more than one rank;
    - `@step` takes the control `stop`, a term on each rank, and returns the metric `stop`: their sum. So all ranks leave after the same step;
    - states have the placement of the strategy. That of ddp is none: every rank has all of them.

    `@eval` and `@predict` stay as they are. One rank has no mesh: nothing changes.

    ```mlir
    func.func @step(%w: tensor<4x2xf32> {titan.state = @w}, %x: tensor<8x3x2xf32> {titan.input = "x"}) -> ... {
    // becomes, with mesh.axes = { replicate = 2 }
    module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 1, "tensor" = 1]>} {
    func.func @step(%w: tensor<4x2xf32> {titan.state = @w}, %x: tensor<8x3x2xf32> {dist.placement = #dist.placement<["replicate" = shard(0)]>, titan.input = "x"},
                    %stop: tensor<i64> {dist.placement = #dist.placement<["replicate" = partial]>, titan.control = "stop"}) -> (..., tensor<i64> {titan.metric = "stop"}) {
    ```

    Example: test/shard/seed-placements.mlir.
  }];
  let dependentDialects = ["::titan::dist::DistDialect"];
}

def PropagatePlacements : TitanPass<"titan-shard-propagate-placements", "::mlir::ModuleOp"> {
  let summary = "notes what of each value each rank has";
  let description = [{
    Before: arguments and states are placed. After: so is every value that is not replicated, by the attribute `dist.placements` of its op. Nothing else
    changes: values still mean what they did.

    On each axis of the mesh, from the first op to the last:

    - A loop whose batches are cut along the dimension of its iterations divides them. In its body the slices, and all that is computed from them, belong
      to the rank's own *iteration*. Its accumulators are *partial*: what each rank has added, from zero on.
    - Behind the loop its sums are partial. A partial value passes add and sub with another, neg, reshape, transpose, and mul by a replicated scalar: each
      rank does it with its term. All other ops take the sum.
    - A value that is cut stays so through ops in which every operand has the dimension, by their factors (casts, transposes, elementwise ops); a sum over
      that dimension is partial. All other ops take the whole.

    Refused by name: an accumulator that starts at something else than zero, or whose sum so far is read; a result that is no sum; nested loops; a batch that
    is not cut beside one that is.

    ```mlir
    %s = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
      %g = titan.reduce sum %xi [0] : tensor<3x2xf32> to tensor<2xf32>
      %n = titan.add %a, %g : tensor<2xf32>
      accum.yield %n : tensor<2xf32>
    }
    // becomes, with %x cut along its first dimension
    %s = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
      %g = titan.reduce sum %xi [0] {dist.placements = [#dist.placement<["replicate" = iteration]>]} : tensor<3x2xf32> to tensor<2xf32>
      %n = titan.add %a, %g {dist.placements = [#dist.placement<["replicate" = partial]>]} : tensor<2xf32>
      accum.yield %n : tensor<2xf32>
    } {dist.placements = [#dist.placement<["replicate" = partial]>]}
    ```

    Example: test/shard/propagate-placements.mlir.
  }];
  let dependentDialects = ["::titan::dist::DistDialect"];
}

def Partition : TitanPass<"titan-shard-partition", "::mlir::ModuleOp"> {
  let summary = "makes the module the program of each rank, with the collectives that it needs";
  let facts = [MovesRounding];
  let description = [{
    Before: every value is placed. After: the module of each rank, without placements.

    - The loop runs the rank's iterations, k = G / R of them, over inputs `[k, micro, ...]`. Its index, which random ops draw by, becomes the number of the
      microbatch in the job (`microbatchNumber` of runtime/program/Microbatches.h): a sum of the index and this rank's coordinates.
    - Where an op takes a sum of which a rank has a term, a `dist.all_reduce` stands between them: one for all values of a phase that the same axes divide,
      right behind the op that gives them. Sums of gradients are in phase backward, all others in phase update. `path` names the operands one by one: a
      parameter, a metric or a module. Each has a remark (category `shard`): what is summed, over which axes, how many bytes, why.

    The types of sums do not change. Refused by name: rows that a loop stacks, and whatever else but a batch is cut.

    ```mlir
    %s = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>) ... -> (tensor<2xf32>) {...} {dist.placements = [#dist.placement<["replicate" = partial]>]}
    %y = titan.exp %s : tensor<2xf32>
    // becomes, with mesh.axes = { replicate = 2 }
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x3x2xf32>) ... -> (tensor<2xf32>) {...}
    %all = dist.all_reduce sum %s axes ["replicate"] order rank {path = ["fc"], phase = #titan<phase update>} : tensor<2xf32> to tensor<2xf32>
    %y = titan.exp %all : tensor<2xf32>
    ```

    Example: test/shard/partition.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::titan::dist::DistDialect"];
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
  let summary = "checks that the module is the program of each rank";
  let description = [{
    - `dist.mesh` is the recipe's mesh; there is none where that has one rank.
    - Every state that a function takes or returns has the local type: the part that the symbol's placement gives a rank, by `localShape` of
      runtime/program/Placement.h. Nothing is local to a rank that the symbol does not say.
    - No value or argument is placed by an attribute any more.
    - The loops of `@step` are one chain, and run the microbatches of one data rank; so many rows have its inputs.
    - On more than one rank, as long as collectives are whole ops: no op takes the sum of what a rank has a term of, or sums what all ranks have. No
      collective stands in the loop, as `mesh.sync = "deferred"` says.

    Example: test/shard/verify-invalid.mlir.
  }];
}

#endif // TITAN_SHARD_PASSES_TD
