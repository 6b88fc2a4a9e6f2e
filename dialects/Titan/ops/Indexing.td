// Rows of a table and elements by index, and the gradient of rows.
#ifndef TITAN_OPS_INDEXING_TD
#define TITAN_OPS_INDEXING_TD

include "dialects/Titan/ops/Base.td"

def Titan_EmbeddingOp : Titan_TensorOp<"embedding"> {
  let summary = "the rows of `table` that `indices` name";
  let description = [{
    table [V, rest...] and indices [I...] give [I..., rest...]. An index below 0 counts as 0, one from V on as V - 1: the job refuses input
    data with such indices before it trains on them.

    Row `padding` of the table, where it is given, has no gradient from here: PyTorch's `padding_idx`. The look-up itself is as without it.

    Constraints:
    - (C1) the table has rank 1 or more; the result's shape is the one above, of the table's element type.
    - (C2) padding is a row of the table.

    ```mlir
    %x = titan.embedding %wte, %ids : (tensor<50257x768xf32>, tensor<4x64xi64>) -> tensor<4x64x768xf32>
    ```
  }];
  let opArguments = (ins Titan_Tensor:$table, Titan_IntTensor:$indices, OptionalAttr<I64Attr>:$padding);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$table `,` $indices (`padding` $padding^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$table, "::mlir::Value":$indices,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
  let extraClassDeclaration = Titan_overwritesNothing;
}

def Titan_EmbeddingGradOp : Titan_TensorOp<"embedding_grad", [AccumulatingOpInterface]> {
  let summary = "adjoint of the table of titan.embedding: row v is the sum of `dresult` where the index is v";
  let description = [{
    dresult [I..., rest...] and indices [I...] give [V, rest...], V = `rows`. Sums run in f32 (f64 for f64), which is also the result's type, in the row-major
    order of the indices, starting from `acc` or zero: one order on any number of threads. On a card it is that of `sorted` in `#kernel.embedding_grad`.
    Nothing is added to row `padding`, where it is given.

    Constraints:
    - (C1) dresult's leading dimensions are those of indices; the result is [rows, rest...] of the accumulation type.
    - (C2) `acc` has the result's type.
    - (C3) padding is a row of the result.
  }];
  let opArguments = (ins Titan_FloatTensor:$dresult, Titan_IntTensor:$indices, Optional<Titan_FloatTensor>:$acc, I64Attr:$rows,
                         OptionalAttr<I64Attr>:$padding);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $dresult `,` $indices (`acc` $acc^)? `rows` $rows (`padding` $padding^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory;
}

def Titan_GatherOp : Titan_TensorOp<"gather"> {
  let summary = "elements of the operand at the places along `dim` that indices name";
  let description = [{
    Element u of the result is the operand's element with u's coordinates, but with an index for that along `dim`. The index is the one at the leading
    coordinates of u, as many as `indices` has dimensions: those that it lacks share it. So this reads what `titan.scatter` changes. An index below 0 counts
    as 0, one from the extent on as the last, as in `titan.embedding`.

    Constraints:
    - (C1) `dim` is within the rank; indices have the operand's leading extents but along `dim`, which is among them.
    - (C2) the result has the operand's type, but along `dim` the extent of indices.

    ```mlir
    %y = titan.gather %x, %places dim 1 : (tensor<4x10xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
    ```
  }];
  let opArguments = (ins Titan_Tensor:$operand, Titan_IntTensor:$indices, I64Attr:$dim);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand `,` $indices `dim` $dim attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$indices, "int64_t":$dim,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
  let extraClassDeclaration = Titan_overwritesNothing;
}

#endif // TITAN_OPS_INDEXING_TD
