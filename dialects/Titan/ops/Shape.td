// Ops that move elements without computing: shape, order, pieces.
#ifndef TITAN_OPS_SHAPE_TD
#define TITAN_OPS_SHAPE_TD

include "dialects/Titan/ops/Base.td"

def Titan_ReshapeOp : Titan_TensorOp<"reshape", [SameOperandsAndResultElementType]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    Constraints:
    - (C1) operand and result have the same number of elements.
  }];
  let opArguments = (ins Titan_Tensor:$operand);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let extraClassDeclaration = Titan_workIsView;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Titan_TransposeOp : Titan_TensorOp<"transpose"> {
  let summary = "result dimension i is operand dimension permutation[i]";
  let description = [{
    Constraints:
    - (C1) `permutation` is a permutation of the operand's dimensions.
    - (C2) the result's type is the permuted operand's.
  }];
  let opArguments = (ins Titan_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand $permutation attr-dict `:` type($operand) `to` type($result)";
  let extraClassDeclaration = Titan_overwritesNothing;
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$permutation,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_BroadcastOp : Titan_TensorOp<"broadcast", [SameOperandsAndResultElementType]> {
  let summary = "operand dimension i becomes result dimension dims[i]; all others repeat";
  let description = [{
    Constraints:
    - (C1) `dims` has one entry per operand dimension, strictly increasing, within the result's rank.
    - (C2) the extents of mapped dimensions are equal.

    ```mlir
    %rows = titan.broadcast %bias [1] : tensor<10xf32> to tensor<64x10xf32>
    ```
  }];
  let opArguments = (ins Titan_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `to` type($result)";
  let extraClassDeclaration = Titan_workIsCopied;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Titan_ConcatOp : Titan_TensorOp<"concat"> {
  let summary = "joins the operands along one dimension";
  let description = [{
    Constraints:
    - (C1) at least one operand; equal element types; all extents but that of `dim` are equal.
    - (C2) `dim` is within the rank; the result's extent there is the sum.
  }];
  let opArguments = (ins Variadic<Titan_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` functional-type($inputs, $result)";
  let extraClassDeclaration = Titan_worksFromMemory;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$dim,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_SliceOp : Titan_TensorOp<"slice", [SameOperandsAndResultElementType]> {
  let summary = "elements offsets[d] + i * strides[d] of each dimension, i below the result's extent";
  let description = [{
    Constraints:
    - (C1) one offset and one positive stride per dimension; ranks are equal.
    - (C2) offset >= 0 and the last element lies within the operand.
  }];
  let opArguments = (ins Titan_Tensor:$operand, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = [{
    $operand `offsets` $offsets `strides` $strides attr-dict `:` type($operand) `to` type($result)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Titan_ReverseOp : Titan_TensorOp<"reverse", [SameOperandsAndResultType]> {
  let summary = "element i of each dimension of `dims` is the operand's element extent - 1 - i; the other dimensions stay";
  let description = [{
    Its own adjoint.

    Constraints:
    - (C1) `dims` are dimensions of the operand, strictly increasing.

    ```mlir
    %back = titan.reverse %x [0] : tensor<16x4x8xf32>
    ```
  }];
  let opArguments = (ins Titan_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_overwritesNothing;
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::llvm::ArrayRef<int64_t>":$dims,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase), [{
    build($_builder, $_state, operand.getType(), operand, dims, path, phase);
  }]>];
}

def Titan_PadOp : Titan_TensorOp<"pad", [SameOperandsAndResultElementType]> {
  let summary = "operand element i of dimension d lands at low[d] + i * (1 + interior[d]); all else is `value`";
  let description = [{
    The adjoint of `titan.slice`.

    Constraints:
    - (C1) `low` and `interior` have one non-negative entry per dimension; ranks are equal.
    - (C2) the last operand element lands within the result.
  }];
  let opArguments = (ins Titan_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$interior,
                         DefaultValuedAttr<F64Attr, "0.0">:$value);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = [{
    $operand `low` $low `interior` $interior attr-dict `:` type($operand) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Titan_IotaOp : Titan_TensorOp<"iota"> {
  let summary = "each element's index along `dim`";
  let description = [{
    Constraints:
    - (C1) `dim` is within the rank.
  }];
  let opArguments = (ins I64Attr:$dim);
  let results = (outs Titan_NumberTensor:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_workIsCopied;
  let hasVerifier = 1;
}

#endif // TITAN_OPS_SHAPE_TD
