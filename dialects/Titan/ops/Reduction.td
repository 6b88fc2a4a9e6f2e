// Reductions: the reduced dimensions are dropped.
#ifndef TITAN_OPS_REDUCTION_TD
#define TITAN_OPS_REDUCTION_TD

include "dialects/Titan/ops/Base.td"

def Titan_ReduceOp : Titan_TensorOp<"reduce", [SameOperandsAndResultElementType]> {
  let summary = "combines the elements along `dims`";
  let description = [{
    The adjoint of `max` and `min` goes to the extreme elements, in equal parts where several are equal; that of `prod` is the
    product of the other elements, computed without division.

    Constraints:
    - (C1) `dims` is strictly increasing and within the rank.
    - (C2) the result's shape is the operand's without `dims`.

    ```mlir
    %sum = titan.reduce sum %x [0] : tensor<64x10xf32> to tensor<10xf32>
    ```
  }];
  let opArguments = (ins Titan_ReduceKindAttr:$kind, Titan_NumberTensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Titan_NumberTensor:$result);
  let assemblyFormat = "$kind $operand $dims attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::titan::ir::ReduceKind":$kind, "::mlir::Value":$operand,
                                 "::llvm::ArrayRef<int64_t>":$dims,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_ArgmaxOp : Titan_TensorOp<"argmax"> {
  let summary = "index of the largest element along `dim`, the first of equal ones; NaN counts as largest";
  let description = [{
    Constraints:
    - (C1) `dim` is within the rank; the result is i64 and lacks that dimension.
  }];
  let opArguments = (ins Titan_NumberTensor:$operand, I64Attr:$dim);
  let results = (outs StaticShapeTensorOf<[I64]>:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "int64_t":$dim,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

#endif // TITAN_OPS_REDUCTION_TD
