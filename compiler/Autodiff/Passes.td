// Passes of the stage *differentiate*: from a model to a training step, an evaluation and a prediction.
#ifndef TITAN_DIFFERENTIATE_PASSES_TD
#define TITAN_DIFFERENTIATE_PASSES_TD

include "dialects/PassFacts.td"

class DifferentiatePass<string name> : TitanPass<"titan-differentiate-" # name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::titan::ir::TitanDialect", "::titan::accum::AccumDialect", "::mlir::func::FuncDialect"];
}

def FreezeParameters : DifferentiatePass<"freeze-parameters"> {
  let summary = "makes the parameters that model.frozen matches not trainable";
  let description = [{
    Before: states as imported. After: no `param` whose canonical name, or one that it is tied under, matches a glob of `model.frozen` is `trainable`, and at least one
    param is.
    A pattern that matches no parameter is an error: it is nearly always a spelling mistake.

    Example: test/autodiff/freeze-parameters.mlir.
  }];
}

def InsertLoss : DifferentiatePass<"insert-loss"> {
  let summary = "turns @model and the recipe's loss into @step, @eval and @predict";
  let description = [{
    Before: `@model` takes states and inputs of one microbatch and returns outputs. After:

    - `@step(states, counter step, inputs [G, micro, ...], targets [G, micro, ...], control train.seed) -> (states, metrics loss_sum and count)`
      with one unordered `accum.loop` over the G = batch.global / batch.micro microbatches, whose body is the model and the loss. Dropout gets the seed and the step.
    - `@eval(states, inputs [micro, ...], targets, control valid_rows) -> (loss_sum, count, correct)`: dropout removed, rows from `valid_rows` on do not
      count. `correct` is the number of targets that the largest logit hits; 0 for losses without classes. With loss.kind = "output" a batch that is not full counts nothing. Where samples depend on
      each other, as by a norm of the batch without running statistics, there is no `valid_rows`, and all rows count.
    - `@predict(states, inputs) -> outputs`: dropout removed.

    | loss.kind | targets | loss_sum | count |
    |---|---|---|---|
    | cross_entropy | i64, the output's shape without the classes ([micro, positions] for an output [micro * positions, classes]) | sum over targets that are not ignore_index | their number |
    | mse, l1, bce_with_logits | f32, the output's shape | sum over elements | number of elements |
    | output | none | the output | 1 per microbatch |

    A target that bears the name of a model input is that input. An output whose rows are not sample after sample, as of a recurrent layer with time first, is
    refused: its targets would be others'.

    Example: test/autodiff/insert-loss.mlir.
  }];
}

def BuildGradients : DifferentiatePass<"build-gradients"> {
  let summary = "adds the gradient of the loss sum for every trainable parameter to the loop of @step";
  let description = [{
    Reverse mode by the rules of DifferentiableOpInterface. Before: `@step` returns `loss_sum`. After: for each trainable parameter
    that reaches the loss the loop yields its gradient and `@step` returns it, tagged `titan.gradient`. What no trainable parameter needs is not built:
    no adjoints of inputs, nor of frozen parameters, nor before the first trainable one. Built ops carry the paths of the op that they are
    the adjoint of, and phase backward. No gradient passes a `titan.detach`, and afterwards there is none.

    A trainable parameter that does not reach the loss gets no gradient and is never updated, as in PyTorch; a remark names it. An op on the path to the loss that has
    no derivative is an error with its module path. No trainable parameter that reaches the loss is an error.

    Example: test/autodiff/build-gradients.mlir.
  }];
}

def CombinePieces : DifferentiatePass<"combine-pieces"> {
  let summary = "makes a sum of zero-padded pieces of one tensor a concatenation";
  let description = [{
    The adjoint of a slice is a `titan.pad`; the adjoint of a tensor that was cut into pieces (query, key and value of one projection, the halves
    of a rotation) is their sum. Terms that pad along one dimension and do not overlap become one `titan.concat`, with zeros in the gaps; pieces that take
    turns (x[..., ::2], x[..., 1::2]) are joined along a dimension of their own. Other terms of the sum are added as before, after the pieces.

    ```mlir
    %p = titan.pad %a low [0, 0] interior [0, 0] : tensor<4x2xf32> to tensor<4x5xf32>
    %q = titan.pad %b low [0, 2] interior [0, 0] : tensor<4x3xf32> to tensor<4x5xf32>
    %s = titan.add %p, %q : tensor<4x5xf32>
    // becomes
    %s = titan.concat %a, %b dim 1 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<4x5xf32>
    ```

    Example: test/autodiff/combine-pieces.mlir.
  }];
}

def CombineDuplicates : DifferentiatePass<"combine-duplicates"> {
  let summary = "merges equal ops of a block and joins their module paths";
  let description = [{
    Two titan ops are equal if their operands and attributes are, path and phase aside. The first stays, with its phase and the union of the
    paths. Ops of different blocks are not merged: nothing moves in or out of the loop.

    Example: test/autodiff/combine-duplicates.mlir.
  }];
}

def DecidePrecision : DifferentiatePass<"decide-precision"> {
  let summary = "decides every rounding: the type in which each op computes";
  let facts = [MovesRounding];
  let description = [{
    Before: the model's own types. After: with precision.compute = "f32" every float tensor of @step, @eval and @predict is f32 or f64 as the model says, and casts
    stand as `titan.convert`. Later stages may move or duplicate a cast, never change where a value is rounded. A model that computes in f16 or bf16 itself is refused.

    With precision.compute = "bf16" states stay f32 (the master weights), and contractions and attention read bf16: every operand is rounded once, where it is
    defined, so a weight once a step. A contraction gives f32, which is rounded to bf16 behind bias and relu; the bias is rounded as the weight is. Attention and its gradient give bf16; gradients of weights stay
    f32 and accumulate so. All else (norms, softmax, losses, the residual stream, reductions) computes in f32 on widened values. A remark for each contraction.

    Example: test/autodiff/decide-precision.mlir, test/autodiff/decide-precision-bf16.mlir.
  }];
}

def VerifyDifferentiate : DifferentiatePass<"verify"> {
  let summary = "checks what holds after *differentiate*";
  let description = [{
    - `@step`, `@eval` and `@predict` are there, `@model` is not; every argument and result is tagged.
    - `@step` has one `accum.loop`, unordered, of recipe.microbatches() iterations, and each of its inputs has that first extent.
    - `@step` returns each of its states, `loss_sum` (f32), `count` (i64), and at least one gradient of the type of its trainable state.
    - `@eval` returns `loss_sum`, `count` and `correct`. Neither it nor `@predict` has dropout or returns states.

    Example: test/autodiff/verify.mlir.
  }];
}

#endif // TITAN_DIFFERENTIATE_PASSES_TD
