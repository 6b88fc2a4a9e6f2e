// Updates of the elements that indices name.
#ifndef TITAN_OPS_SCATTER_TD
#define TITAN_OPS_SCATTER_TD

include "dialects/Titan/ops/Base.td"

def Titan_ScatterOp : Titan_TensorOp<"scatter"> {
  let summary = "the operand, changed by each of `updates` at the place along `dim` that its index names";
  let description = [{
    Update u meets the operand's element with u's coordinates, but with an index for that along `dim`. The index is the one at the leading coordinates of u, as
    many as `indices` has dimensions: those that it lacks share it. So indices [N] and updates [N, D] change rows of [V, D], and indices of the updates' own
    shape place each update by itself.

    Updates are applied in their row-major order. `none` replaces the element, so that of equal indices the last one wins; `add`, `mul`, `max` and `min` combine, NaN
    wins max and min. Sums and products of floats run in f32 (f64 for f64) and are rounded once to the operand's type. An index below 0 counts as 0, one from the extent
    on as the last, as in `titan.embedding`.

    The adjoint of max and min is shared equally among the element and the updates that are equal to the result. One of an update that another one has
    replaced is 0.

    Constraints:
    - (C1) `dim` is within the rank; updates have the operand's rank and element type, and its extents but along `dim`.
    - (C2) indices have the leading dimensions of updates, `dim` among them.
    - (C3) the result has the operand's type; truth values are replaced only.

    ```mlir
    %y = titan.scatter add %x, %rows, %terms dim 0 : (tensor<10x4xf32>, tensor<3xi64>, tensor<3x4xf32>) -> tensor<10x4xf32>
    ```
  }];
  let opArguments = (ins Titan_ScatterKindAttr:$kind, Titan_Tensor:$operand, Titan_IntTensor:$indices, Titan_Tensor:$updates,
                         I64Attr:$dim);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$kind $operand `,` $indices `,` $updates `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory;
  let builders = [OpBuilder<(ins "::titan::ir::ScatterKind":$kind, "::mlir::Value":$operand, "::mlir::Value":$indices,
                                 "::mlir::Value":$updates, "int64_t":$dim,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase), [{
    build($_builder, $_state, operand.getType(), ScatterKindAttr::get($_builder.getContext(), kind), operand, indices, updates,
          $_builder.getI64IntegerAttr(dim), path, phase);
  }]>];
}

#endif // TITAN_OPS_SCATTER_TD
