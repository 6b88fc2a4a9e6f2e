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

def NestLoops : TitanPass<"titan-shard-nest-loops", "::mlir::ModuleOp"> {
  let summary = "makes nested loops of the one over microbatches, for ranks to sum behind";
  let facts = [MovesRounding];
  let description = [{
    Before: `@step` has one loop over the microbatches of the job. After, where the recipe has more than one rank:

    - `mesh.sync` of the recipe is no longer "auto";
    - the loops are those of `microbatchLoops` (runtime/program/Microbatches.h): one loop if ranks sum once a step, else one around another, where what the
      inner one sums begins at zero and is added to the accumulators of the outer one. Each is to be divided along axes of its own, so that a sum over them stands right
      behind it: behind each round of microbatches if it is immediate, behind `sync_every` of them, or by axis.

    A microbatch keeps its number. One rank has one loop: nothing changes.

    With `mesh.reduce` "tree" the loop is a tree before, on one rank, too. After, its levels are loops, one inside of the other: those that ranks sum once a step,
    as one tree that their axes are to divide; those of a rank's own microbatches, running loops of count 2, each from zero; those that ranks sum with each
    microbatch, as one tree again.

    ```mlir
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x3xf32>) accumulators(%a = %zero : tensor<3xf32>) -> (tensor<3xf32>) {
      %n = titan.add %a, %xi : tensor<3xf32>
      accum.yield %n : tensor<3xf32>
    }
    // becomes, with mesh.axes = { replicate = 2 } and mesh.sync = "immediate"
    %b = titan.reshape %x : tensor<4x3xf32> to tensor<2x2x3xf32>
    %s = accum.loop %i in 2 running slices(%xi = %b : tensor<2x2x3xf32>) accumulators(%a = %zero : tensor<3xf32>) -> (tensor<3xf32>) {
      %t = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x3xf32>) accumulators(%c = %none : tensor<3xf32>) -> (tensor<3xf32>) {
        %m = titan.add %c, %xj : tensor<3xf32>
        accum.yield %m : tensor<3xf32>
      }
      %n = titan.add %a, %t : tensor<3xf32>
      accum.yield %n : tensor<3xf32>
    }
    ```

    Example: test/shard/nest-loops.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::titan::accum::AccumDialect", "::titan::ir::TitanDialect"];
}

def SeedPlacements : TitanPass<"titan-shard-seed-placements", "::mlir::ModuleOp"> {
  let summary = "says what of the arguments of @step each rank has";
  let description = [{
    Before: a module of the whole job. After, where the recipe has more than one rank:

    - the module has `dist.mesh`, the recipe's mesh;
    - the inputs of `@step` are cut along their first dimension, that of the microbatches, on every data axis of more than one rank; those of `@eval` and
      `@predict` are each rank's own, like an *iteration*;
    - `@step` takes the control `stop`, a term on each rank, and returns the metric `stop`: their sum. So all ranks leave after the same step;
    - states have the placement of the strategy, by the table of runtime/program/Strategy.h. That of ddp is none: every rank has all of them. What has fewer
      elements than ranks is whole, and so are buffers and counters.

    A dimension that does not divide leaves padding behind the elements of the last ranks. Each parameter has a remark (category `shard`): the dimension that is
    cut, and how many elements are padding.

    Refused by name: a pattern of `mesh.reshard` that matches no parameter.

    One rank has no mesh: nothing changes.

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

def GroupTerms : TitanPass<"titan-shard-group-terms", "::mlir::ModuleOp"> {
  let summary = "adds the terms of a sum first that ranks have alike";
  let facts = [MovesRounding];
  let description = [{
    Before: arguments and states are placed. After: in a sum behind the loop, terms of equal placement are added first, in their order, and what all ranks
    have is added last. So the sum is exchanged once for each placement, not once between any two terms that differ. With `mesh.reduce` "tree" sums of floats
    stay as they are.

    The norm is such a sum: squares of a gradient of which each rank has a part are a term on each rank, those of a small gradient that all ranks have are
    none. Sums whose terms are all placed alike stay as they are.

    ```mlir
    // %p and %q are partial, %r is replicated
    %s = titan.add %p, %r : tensor<f32>
    %t = titan.add %s, %q : tensor<f32>
    // becomes
    %s = titan.add %p, %q : tensor<f32>
    %t = titan.add %s, %r : tensor<f32>
    ```

    Example: test/shard/group-terms.mlir.
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
      to the rank's own *iteration*. Its accumulators are *partial*: what each rank has added, from zero on. Of nested loops each is divided on axes of its own. Around the one
      that an axis divides, gradients are summed before they are added: accumulators have the sum. All else stays partial until behind all loops. Of a
      tree all floats are summed like gradients.
    - An input that is reshaped for nested loops is cut, by each axis, along the dimension of the loop that it divides.
    - Behind the loop its sums are partial. A partial value passes add and sub with another, neg, reshape, transpose, and mul by a replicated scalar: each
      rank does it with its term. All other ops take the sum. With `mesh.reduce` "tree" floats pass only what does not round: neg, reshape and transpose.
    - A value that is cut stays so through ops in which every operand has the dimension, by their factors (casts, transposes, elementwise ops, updates); in
      phase update a sum over that dimension is partial. All other ops take the whole.
    - The gradient that an update applies is summed once for all that read it: to the placement that the strategy gives it (the norm's squares are then
      those of a part).

    Refused by name: an accumulator that starts at something else than zero, or whose sum so far is read; a result that is no sum; a batch that
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
      microbatch in the job (`microbatchNumber` of runtime/program/Microbatches.h): a sum of the index and this rank's coordinates. Nested loops, each likewise.
    - States, and all that is cut, have the type of the rank's part.
    - Where an op takes a value in another placement than it comes, collectives stand between them, one step after the other: `dist.reduce_scatter` from
      terms to a part of their sum, `dist.all_reduce` from terms to their sum, `dist.take_shard` from the whole to a part, `dist.all_gather` from parts to
      the whole.
    - Sums: one collective for all values of a phase that need the same, right behind the last op that gives them, a loop's in the body around it; ops that read a sum too early for this
      move behind it. With `mesh.reduce` "tree" a sum has the order of a tree, and a leaf of a loop that ranks divide is 0 + its term.
      Sums of gradients are in phase backward (converted to `precision.reduce_dtype` and back), all others in phase update. What the update
      gives back to all ranks is gathered alike.
    - Parameters of which each rank has a part: one gather for each value, before the first op that reads it, in forward and again in backward; what
      `mesh.reshard` keeps, once for both. Kept are also those of the last op of forward whose parameters backward reads: it begins with them.

    - What a loop stacks: one gather behind it for each loop that axes divide, then the order of the microbatches.

    `path` names the operands one by one: a parameter, a metric or a module. Each collective has a remark (category `shard`): what is exchanged, over which
    axes, the bytes of its operands, why.

    Refused by name: arguments that are cut and neither batch nor state, and a gather that the strategy does not ask for, unless
    `mesh.allow_reshard` is set (a *missed* remark says it then).

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

    With `mesh.reduce` "tree" only the terms of one microbatch are chained, and their sum is added to the accumulator: what a microbatch gives must not depend
    on what was summed before it.

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
    - As long as collectives are whole ops, what ranks hold behind their elements of a tensor that does not divide is read by nothing but elementwise ops,
      which take padding to padding; where zeros were put before a sum over ranks, sums may read them. What is joined of parts is cut to its own extent first.
    - On more than one rank, as long as collectives are whole ops: no op takes the sum of what a rank has a term of, or the whole of what it has a part of,
      and none sums or gathers what all ranks have. A sum of
      gradients stands right behind the loop that its axes divide, as `mesh.sync` and `mesh.sync_every` say, and any other behind all loops.

    Example: test/shard/verify-padding.mlir. More is in test/shard/verify-invalid.mlir.
  }];
}

#endif // TITAN_SHARD_PASSES_TD
