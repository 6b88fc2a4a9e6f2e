// Passes of the stage *optimize*.
#ifndef TITAN_OPTIMIZE_PASSES_TD
#define TITAN_OPTIMIZE_PASSES_TD

include "dialects/PassFacts.td"

def InsertUpdate : TitanPass<"titan-optimize-insert-update", "::mlir::ModuleOp"> {
  let summary = "turns the gradients that @step returns into updates of the state";
  let description = [{
    Before: `@step` returns `loss_sum`, `count` and one tensor tagged `titan.gradient` for each parameter that is trained.
    After: it returns every state, changed or not, and the metrics `loss` (mean over valid targets), `grad_norm` (of the mean gradient, before clipping),
    `lr`, `count` and `applied`; optimizer slots and counters are declared. All new ops are in phase *update*.

    The gradient of the loss sum is never scaled by a pass of its own: 1 / count and the clip factor are one scalar that the update reads. A step
    whose loss or gradient is not finite, or that has no valid target, changes the counters `step`, `samples` and `skipped` only.

    With `mesh.reduce = "tree"` the squares of a gradient are summed for each index of its outermost dimension, and these sums exactly: then no bit of
    the norm depends on the ranks that have parts of the gradient.

    Weight decay of a parameter: that of its group if the group has one, else 0 if a `no_decay` pattern matches, else the run-time value
    `optimizer.weight_decay`. The first group that matches counts.

    ```mlir
    func.func @step(%w: tensor<4xf32> {titan.state = @w}, %x: tensor<1x2x4xf32> {titan.input = "x"})
        -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<4xf32> {titan.gradient = @w})
    // becomes
    func.func @step(%w: tensor<4xf32> {titan.state = @w}, %x: ..., %m: tensor<4xf32> {titan.state = @w.exp_avg}, ...)
        -> (tensor<4xf32> {titan.state = @w}, tensor<4xf32> {titan.state = @w.exp_avg}, ..., tensor<f32> {titan.metric = "loss"}, ...)
    ```

    Example: test/optimize/insert-update.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def AverageParameters : TitanPass<"titan-optimize-average-parameters", "::mlir::ModuleOp"> {
  let summary = "keeps exponential moving averages of the parameters that an update changes";
  let description = [{
    Before: what *insert-update* leaves. After: for each profile of the recipe's `[ema]` and each parameter that `@step` changes there is a state `@ema.<profile>.<symbol>` of kind
    *ema*, in f32, whose canonical name is the parameter's; so there is of a buffer that `@step` changes and `ema.buffers` names. `@step` takes and returns those of profiles that
    follow each update. Those of profiles with `every = k` above 1 are taken and returned by a function `@ema.k`, which the trainer runs behind an applied update that k divides. All
    new ops are in phase *update*.

    With e the average, p' the new parameter and n the updates applied before this one, e' = e + w (p' - e). The weight w is 1 where n < k, so the first
    move copies and e starts as zeros. Later w is 1 - decay^k, with `warmup` 1 - min(decay, (1 + n) / (10 + n))^k. A step that is not applied changes no bit
    of e. This is `torch.optim.swa_utils.AveragedModel` with a decay.

    A frozen parameter has no average: it would equal the parameter. The weight is one scalar of a step and profile.

    ```mlir
    // with profiles = { slow = 0.75 }, behind the update that makes %w_new
    %change = titan.sub %w_new, %e : tensor<4xf32>
    %part = titan.mul %weight, %change : tensor<4xf32>
    %moved = titan.add %e, %part : tensor<4xf32>
    %next = titan.select %applied, %moved, %e : tensor<4xi1>, tensor<4xf32>
    ```

    Example: test/optimize/average-parameters.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def VerifyOptimize : TitanPass<"titan-optimize-verify", "::mlir::ModuleOp"> {
  let summary = "checks what holds after *optimize*";
  let description = [{
    - `@step` returns each of its states exactly once, with the argument's type, and no gradient.
    - Every state of the module is an argument of `@step`.
    - The metrics `loss`, `grad_norm`, `lr`, `count` and `applied` are there.
    - No op outside of phase *update* writes: the value that is returned for a state is its argument or the result of an op in phase update.

    Example: test/optimize/verify-invalid.mlir.
  }];
}

#endif // TITAN_OPTIMIZE_PASSES_TD
