// Windows over any dimensions, combined element by element.
#ifndef TITAN_OPS_POOL_TD
#define TITAN_OPS_POOL_TD

include "dialects/Titan/ops/Base.td"

def Titan_PoolOp : Titan_TensorOp<"pool", [SameOperandsAndResultElementType]> {
  let summary = "the sum or the maximum of each window of the operand";
  let description = [{
    Result element p combines the operand's elements p * strides + t * dilations - low over all t below `window`. Elements outside of the operand, by which
    `low` and `high` say it goes on, are 0 in a sum and never the maximum; NaN always is. The adjoint of `max` is `titan.max_pool_grad`.

    Constraints:
    - (C1) the lists have one entry for each dimension; windows, strides and dilations are positive, `low` and `high` are not negative.
    - (C2) a window is not larger than the padded operand; the result has one element for each that fits.
    - (C3) each window of a maximum has an element of the operand; `kind` is sum or max.

    ```mlir
    %y = titan.pool max %x window [1, 3, 3, 1] strides [1, 2, 2, 1] low [0, 1, 1, 0] high [0, 1, 1, 0] dilations [1, 1, 1, 1]
       : tensor<8x32x32x64xf32> to tensor<8x16x16x64xf32>
    ```
  }];
  let opArguments = (ins Titan_ReduceKindAttr:$kind, Titan_NumberTensor:$operand, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                         DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$dilations);
  let results = (outs Titan_NumberTensor:$result);
  let assemblyFormat = [{
    $kind $operand `window` $window `strides` $strides `low` $low `high` $high `dilations` $dilations attr-dict
    `:` type($operand) `to` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory # "::titan::ir::Windows getWindows(size_t dim);";
}

def Titan_MaxPoolGradOp : Titan_TensorOp<"max_pool_grad"> {
  let summary = "adjoint of titan.pool max: each window's gradient goes to its first maximum";
  let description = [{
    The first one in the row-major order of the window, as in PyTorch and ONNX: behind a relu several elements of a window are often equal. NaN counts as the largest.
    Terms are added in the row-major order of t.

    Constraints:
    - (C1) the lists have one entry for each dimension; windows, strides and dilations are positive, `low` and `high` are not negative.
    - (C2) a window is not larger than the padded operand; dresult has one element for each that fits.
    - (C3) each window has an element of the operand; dresult and result have the operand's element type, the result its shape.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Titan_FloatTensor:$dresult, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                         DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$dilations);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `,` $dresult `window` $window `strides` $strides `low` $low `high` $high `dilations` $dilations attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory # "::titan::ir::Windows getWindows(size_t dim);";
}

#endif // TITAN_OPS_POOL_TD
