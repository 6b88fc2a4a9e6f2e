// Passes that end the stage *import*: what exporters took apart becomes one op again.
#ifndef TITAN_IMPORT_PASSES_TD
#define TITAN_IMPORT_PASSES_TD

include "dialects/PassFacts.td"

def FoldConstants : TitanPass<"titan-import-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "what is computed of constants alone becomes a constant";
  let description = [{
    One exporter folds the table of a rotary embedding, a mask or a scale, the next one writes how to compute it: afterwards both are constants. Each op's result is rounded to its
    type, in f64 arithmetic. Ops that only repeat elements stay (but for splats), so that constants stay small.

    ```mlir
    %eight = titan.constant dense<8.0> : tensor<f32>
    %root = titan.sqrt %eight : tensor<f32>
    // becomes
    %root = titan.constant dense<2.82842708> : tensor<f32>
    ```

    Example: test/frontend/raise/fold-constants.mlir.
  }];
  let options = [Option<"largest", "largest", "int64_t", "262144", "elements of the largest tensor to evaluate">];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def SinkReshapes : TitanPass<"titan-import-sink-reshapes", "::mlir::func::FuncOp"> {
  let summary = "reshapes that flatten leading dimensions move behind what they feed, where they meet their inverse";
  let facts = [MovesRounding];
  let description = [{
    Linear layers on flattened rows, and products over batch and head as one dimension, become those of the original dimensions. A reshape moves through contractions
    (a flattened batch dimension is split in both operands), elementwise ops, softmax, dropout and transpositions, if it only merges dimensions before the last.

    ```mlir
    %flat = titan.reshape %x : tensor<2x3x4xf32> to tensor<6x4xf32>
    %y = titan.contract %flat, %w batch [] x [] contracting [1] x [1] : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
    %z = titan.reshape %y : tensor<6x5xf32> to tensor<2x3x5xf32>
    // becomes
    %z = titan.contract %x, %w batch [] x [] contracting [2] x [1] : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
    ```

    Example: test/frontend/raise/sink-reshapes.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def FoldTransposes : TitanPass<"titan-import-fold-transposes", "::mlir::func::FuncOp"> {
  let summary = "transpositions compose, cancel, and disappear in contractions";
  let facts = [MovesRounding];
  let description = [{
    Transpositions move behind scales, signs and casts, compose with each other, and become part of the contraction that reads them where the order of its free dimensions allows. One
    that moves dimensions of extent 1 only is a reshape. Sums and products are ordered: what is repeated comes second.

    ```mlir
    %t = titan.transpose %w [1, 0] : tensor<5x4xf32> to tensor<4x5xf32>
    %y = titan.contract %x, %t batch [] x [] contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
    // becomes
    %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
    ```

    Example: test/frontend/raise/fold-transposes.mlir.
  }];
  let options = [Option<"sink", "sink", "bool", "false", "also move transpositions behind biases, slices, reductions, joins, norms, padding and reshapes, where patterns would not look through them: what stands between convolutions has channels last">];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseDropout : TitanPass<"titan-import-raise-dropout", "::mlir::func::FuncOp"> {
  let summary = "a product with a random mask over its mean becomes dropout";
  let description = [{
    Recognises `x m / k` where m is 1 with probability k, 0 < k < 1: `u < k` or `floor(u + k)` of uniform numbers u. Constants may stand at either
    factor, in front of a broadcast or behind it. The dimensions along which m is repeated share their decisions: stochastic depth, dropout of channels.
    So evaluation keeps everything, where the numbers would be drawn. A mask without the factor 1 / k stays as it is: its mean is not 1.

    Element i of m is decided by 16 bits of the stream of u, no longer by 24.

    ```mlir
    %u = titan.random uniform stream 7 : tensor<8xf32>
    %m = titan.compare lt %u, %k : tensor<8xf32>
    %f = titan.convert %m : tensor<8xi1> to tensor<8xf32>
    %s = titan.div %f, %k : tensor<8xf32>
    %b = titan.broadcast %s [0] : tensor<8xf32> to tensor<8x4xf32>
    %y = titan.mul %x, %b : tensor<8x4xf32>
    // becomes, with k = 0.75
    %y = titan.dropout %x p 0.25 stream 7 shared [1] : tensor<8x4xf32> to tensor<8x4xf32>
    ```

    Example: test/frontend/raise/raise-dropout.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseActivations : TitanPass<"titan-import-raise-activations", "::mlir::func::FuncOp"> {
  let summary = "products that spell out GELU or SiLU, and log(sigmoid(x)), become one op";
  let facts = [MovesRounding];
  let description = [{
    Recognises, in any association and order of the factors,
    `x/2 (1 + erf(x / sqrt 2))`, `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` and `x sigmoid(x)`. The constants are those of the published formulas
    to a relative 1e-5. Values in between must have no other use. `log(sigmoid(x))` becomes `-softplus(-x)`, which is finite for every x.

    ```mlir
    %s = titan.sigmoid %x : tensor<2x4xf32>
    %y = titan.mul %x, %s : tensor<2x4xf32>
    // becomes
    %y = titan.silu %x : tensor<2x4xf32>
    ```

    Example: test/frontend/raise/raise-activations.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseLayerNorm : TitanPass<"titan-import-raise-layer-norm", "::mlir::func::FuncOp"> {
  let summary = "mean, deviation and affine ops that spell out a layer normalisation become one op";
  let facts = [MovesRounding];
  let description = [{
    Recognises `(x - mean) / sqrt(variance + epsilon)` over trailing dimensions, with the reductions as sums scaled by
    1/N, and folds a scale and a bias that follow into the op.

    ```mlir
    %sum = titan.reduce sum %x [1] : tensor<2x4xf32> to tensor<2xf32>
    %mean = titan.mul %sum, %quarter : tensor<2xf32>
    %m = titan.broadcast %mean [0] : tensor<2xf32> to tensor<2x4xf32>
    %d = titan.sub %x, %m : tensor<2x4xf32>
    ...
    %y = titan.div %d, %s : tensor<2x4xf32>
    // becomes
    %y, %mean, %rstd = titan.layer_norm %x over [1] epsilon 1.0e-05 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
    ```

    Example: test/frontend/raise/raise-layer-norm.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseRmsNorm : TitanPass<"titan-import-raise-rms-norm", "::mlir::func::FuncOp"> {
  let summary = "a value over its root mean square becomes one op";
  let facts = [MovesRounding];
  let description = [{
    Recognises x / sqrt(mean(x^2) + epsilon) over trailing dimensions, as a quotient or as a product with a reciprocal, and folds a scale that follows into the op. A computed
    scale (1 + weight) is a scale like any other.

    ```mlir
    %square = titan.mul %x, %x : tensor<2x4xf32>
    %sum = titan.reduce sum %square [1] : tensor<2x4xf32> to tensor<2xf32>
    ...
    %y = titan.mul %x, %rstd : tensor<2x4xf32>
    // becomes
    %y, %rstd = titan.rms_norm %x axis 1 epsilon 1.0e-06 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
    ```

    Example: test/frontend/raise/raise-rms-norm.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseSoftmax : TitanPass<"titan-import-raise-softmax", "::mlir::func::FuncOp"> {
  let summary = "e^(x - max) over its sum becomes one op";
  let facts = [MovesRounding];
  let description = [{
    ```mlir
    %e = titan.exp %x : tensor<2x4xf32>
    %sum = titan.reduce sum %e [1] : tensor<2x4xf32> to tensor<2xf32>
    %s = titan.broadcast %sum [0] : tensor<2xf32> to tensor<2x4xf32>
    %y = titan.div %e, %s : tensor<2x4xf32>
    // becomes
    %y = titan.softmax %x dim 1 : tensor<2x4xf32>
    ```

    Example: test/frontend/raise/raise-softmax.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseRotary : TitanPass<"titan-import-raise-rotary", "::mlir::func::FuncOp"> {
  let summary = "products with cosines and sines that rotate pairs become one op";
  let facts = [MovesRounding];
  let description = [{
    Recognises x cos + rotate_half(x) sin and the rotation of both halves by themselves, with pairs of halves or of neighbours, tables that are constant or computed, per position or also
    per sample, and a rest of each head that is not rotated. The op works on [batch, position, head, width]: it stands between transpositions where the model has heads first.

    ```mlir
    %straight = titan.mul %x, %cos : tensor<1x3x2x4xf32>
    %turned = titan.mul %half, %sin : tensor<1x3x2x4xf32>
    %y = titan.add %straight, %turned : tensor<1x3x2x4xf32>
    // becomes
    %y = titan.rotary %x, %c, %s : (tensor<1x3x2x4xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<1x3x2x4xf32>
    ```

    Example: test/frontend/raise/raise-rotary.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseAttention : TitanPass<"titan-import-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "a softmax between two products becomes attention";
  let facts = [MovesRounding];
  let description = [{
    Recognises softmax(scale * q k^T + masks) v with the scale on either operand or on the scores, masks that are added or written over the scores, a guard against NaN, dropout of the
    probabilities, and heads of keys and values that are repeated for groups of queries. Masks are evaluated: one that forbids exactly the keys after each query becomes `causal`. The op works
    on [batch, position, head, width]; transpositions that it needs cancel with the model's in *fold-transposes*.

    A remark `raise` says what was raised, or why something that looks like attention was not. Consumes the argument attribute `import.initial`.

    ```mlir
    %s = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<1x3x2x4xf32>, tensor<1x3x2x4xf32>) -> tensor<1x2x3x3xf32>
    %p = titan.softmax %s dim 3 : tensor<1x2x3x3xf32>
    %y = titan.contract %p, %v batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<1x2x3x3xf32>, tensor<1x3x2x4xf32>) -> tensor<1x2x3x4xf32>
    // becomes
    %a, %lse = titan.attention %q, %k, %v scale 1.0 : ...
    %y = titan.transpose %a [0, 2, 1, 3] : tensor<1x3x2x4xf32> to tensor<1x2x3x4xf32>
    ```

    Example: test/frontend/raise/raise-attention.mlir.
  }];
  let options = [Option<"largestMask", "largest-mask", "int64_t", "16777216", "elements of the largest mask to evaluate">];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def VerifyImport : TitanPass<"titan-import-verify", "::mlir::ModuleOp"> {
  let summary = "checks what holds after *import*";
  let description = [{
    - The module has exactly one function, `@model`, with one block.
    - Its arguments are its states, each symbol once and of the symbol's type, then its inputs, each with a name of its own.
    - Each result is tagged as an output with a name of its own.
    - All ops are pure titan ops of static shape.

    Example: test/frontend/raise/verify-import.mlir.
  }];
}

#endif // TITAN_IMPORT_PASSES_TD
