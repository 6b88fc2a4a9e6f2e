// Passes that end the stage *import*: what exporters took apart becomes one op again.
#ifndef TITAN_IMPORT_PASSES_TD
#define TITAN_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaiseActivations : Pass<"titan-import-raise-activations", "::mlir::func::FuncOp"> {
  let summary = "products that spell out GELU or SiLU become one op";
  let description = [{
    Recognises, in any association and order of the factors,
    `x/2 (1 + erf(x / sqrt 2))`, `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` and `x sigmoid(x)`. The constants are those of the published formulas
    to a relative 1e-5. Values in between must have no other use.

    ```mlir
    %s = titan.sigmoid %x : tensor<2x4xf32>
    %y = titan.mul %x, %s : tensor<2x4xf32>
    // becomes
    %y = titan.silu %x : tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def RaiseLayerNorm : Pass<"titan-import-raise-layer-norm", "::mlir::func::FuncOp"> {
  let summary = "mean, deviation and affine ops that spell out a layer normalisation become one op";
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
    %y, %mean, %rstd = titan.layer_norm %x axis 1 epsilon 1.0e-05 : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
    ```
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def VerifyImport : Pass<"titan-import-verify", "::mlir::ModuleOp"> {
  let summary = "checks what holds after *import*";
  let description = [{
    - The module has exactly one function, `@model`, with one block.
    - Its arguments are its states, each symbol once and of the symbol's type, then its inputs, each with a name of its own.
    - Each result is tagged as an output with a name of its own.
    - All ops are pure titan ops of static shape.
  }];
}

#endif // TITAN_IMPORT_PASSES_TD
