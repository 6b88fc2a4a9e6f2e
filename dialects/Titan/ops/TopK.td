// The first elements of an order.
#ifndef TITAN_OPS_TOP_K_TD
#define TITAN_OPS_TOP_K_TD

include "dialects/Titan/ops/Base.td"

def Titan_TopKOp : Titan_TensorOp<"top_k"> {
  let summary = "the largest elements of each row of the last dimension in order, or with `smallest` the smallest, and where they stand";
  let description = [{
    The results' last extent says how many. Of equal elements the one with the lower index comes first; -0 and 0 are equal. NaN counts as larger than every
    number, as in PyTorch and NumPy: it is first, or with `smallest` last. All of a row is the row sorted.

    The adjoint of a value goes to the element that it is; indices have none.

    Constraints:
    - (C1) the operand has rank 1 or more; values have its type, but for a last extent of 1 up to the operand's.
    - (C2) indices have the shape of values.

    ```mlir
    %values, %indices = titan.top_k %x : (tensor<4x10xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>)
    %sorted, %order = titan.top_k %x smallest : (tensor<4x10xf32>) -> (tensor<4x10xf32>, tensor<4x10xi64>)
    ```
  }];
  let opArguments = (ins Titan_NumberTensor:$operand, UnitAttr:$smallest);
  let results = (outs Titan_NumberTensor:$values, StaticShapeTensorOf<[I64]>:$indices);
  let assemblyFormat = "$operand (`smallest` $smallest^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory;
}

#endif // TITAN_OPS_TOP_K_TD
