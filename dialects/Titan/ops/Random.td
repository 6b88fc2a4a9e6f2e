// Counter-based random ops: pure functions of (seed, stream, step, global element index).
#ifndef TITAN_OPS_RANDOM_TD
#define TITAN_OPS_RANDOM_TD

include "dialects/Titan/ops/Base.td"

def Titan_DropoutOp : Titan_TensorOp<"dropout", [AttrSizedOperandSegments, RandomOpInterface]> {
  let summary = "zeroes elements with probability `p`, scales the rest by 1 / (1 - p)";
  let description = [{
    Element i is kept if its 16-bit half of Philox4x32-7 is below round((1 - p) * 65536): see runtime/program/Random.h. The op is linear in its
    operand and its own derivative: the adjoint is the same dropout of the result's adjoint, so no mask is stored.

    Along the dimensions `shared` all elements have one decision: the tensor of decisions has extent 1 there. Stochastic depth shares all dimensions
    but the batch, dropout of whole channels those of space.

    `stream` is the hash of the module path and the ordinal. `seed` and `step` are scalars of the run; *differentiate* supplies
    them. `window` and `base` say which part of the global tensor this is; *accumulate* supplies them. Without seed and step both count as
    0, as does base; without a window the tensor is its own global tensor.

    Constraints:
    - (C1) 0 <= p < 1.
    - (C2) seed and step come together; base needs a window.
    - (C3) the window's global shape has the operand's rank, and no extent is below the operand's.
    - (C4) the window's `multiple` is positive and divides base, as the sums and products by constants that make it show.
    - (C5) the shared dimensions are within the rank, in ascending order.

    ```mlir
    %y = titan.dropout %x p 0.1 stream 7 shared [1, 2, 3] seed %seed step %step : tensor<8x4x4x16xf32> to tensor<8x4x4x16xf32>
    ```
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Optional<Titan_IntScalar>:$seed,
                         Optional<Titan_IntScalar>:$step, Optional<Index>:$base,
                         F64Attr:$p, I64Attr:$stream, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$shared,
                         OptionalAttr<Titan_WindowAttr>:$window);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `p` $p `stream` $stream (`shared` $shared^)? (`seed` $seed^)? (`step` $step^)? (`base` $base^)?
    attr-dict `:` type($operand) `to` type($result)
  }];
  let extraClassDeclaration = Titan_workIsPointwise # [{
    ::llvm::SmallVector<int64_t> getDrawnShape();
    ::llvm::SmallVector<int64_t> getDrawnDims(unsigned operand);
    ::llvm::SmallVector<::mlir::Value> makeDeterministic() { return {getOperand()}; }
  }];
  let hasVerifier = 1;
}

def Titan_RandomOp : Titan_TensorOp<"random", [AttrSizedOperandSegments, RandomOpInterface]> {
  let summary = "random numbers: uniform in [0, 1), or standard normal";
  let description = [{
    Element i is what runtime/program/Random.h gives it (`uniformDraw`, `normalNumber`), rounded to the element type. Seed, step, stream, base and window are those of `titan.dropout`. In training each microbatch draws its own; in evaluation the op draws
    with seed and step 0.

    Constraints:
    - (C2) to (C4) of `titan.dropout`.

    ```mlir
    %noise = titan.random normal stream 7 seed %seed step %step : tensor<8x16xf32>
    ```
  }];
  let opArguments = (ins Optional<Titan_IntScalar>:$seed, Optional<Titan_IntScalar>:$step, Optional<Index>:$base,
                         Titan_RandomKindAttr:$kind, I64Attr:$stream, OptionalAttr<Titan_WindowAttr>:$window);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $kind `stream` $stream (`seed` $seed^)? (`step` $step^)? (`base` $base^)? attr-dict `:` type($result)
  }];
  let extraClassDeclaration = Titan_workIsPointwise # [{
    ::llvm::SmallVector<int64_t> getDrawnShape();
    ::llvm::SmallVector<int64_t> getDrawnDims(unsigned) { return {}; }
    ::llvm::SmallVector<::mlir::Value> makeDeterministic();
    bool drawsInEvaluation() { return true; }
  }];
  let hasVerifier = 1;
}

#endif // TITAN_OPS_RANDOM_TD
