// The dense contraction: every matrix product of a model, its gradients and their accumulation.
#ifndef TITAN_OPS_CONTRACTION_TD
#define TITAN_OPS_CONTRACTION_TD

include "dialects/Titan/ops/Base.td"

def Titan_ContractOp : Titan_TensorOp<"contract", [AccumulatingOpInterface, ComputesNarrowOpInterface]> {
  let summary = "sum of products over the contracting dimensions, plus an accumulator";
  let description = [{
    Result dimensions: batch, then the free dimensions of lhs, then those of rhs, each in operand order. Products are summed in
    f32 (f64 for f64 operands), which is also the result's type: rounding to a narrower type is a `titan.convert` of its own.
    With `acc` the result is `acc` + the sum, rounded once more.

    Constraints:
    - (C1) batch and contracting lists have equal lengths on both sides, without repeats, within the ranks.
    - (C2) paired extents are equal.
    - (C3) operands have the same floating element type; the result's is f64 for f64 and f32 otherwise.
    - (C4) the result's shape is the one above; `acc` has the result's type.

    ```mlir
    // y = x W^T
    %y = titan.contract %x, %w batch [] x [] contracting [1] x [1]
       : (tensor<64x784xf32>, tensor<128x784xf32>) -> tensor<64x128xf32>
    // dW += dy^T x
    %g = titan.contract %dy, %x acc %g0 batch [] x [] contracting [0] x [0]
       : (tensor<64x128xf32>, tensor<64x784xf32>, tensor<128x784xf32>) -> tensor<128x784xf32>
    ```
  }];
  let opArguments = (ins Titan_FloatTensor:$lhs, Titan_FloatTensor:$rhs, Optional<Titan_FloatTensor>:$acc,
                         DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
                         DenseI64ArrayAttr:$lhs_contracting, DenseI64ArrayAttr:$rhs_contracting);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`acc` $acc^)? `batch` $lhs_batch `x` $rhs_batch
    `contracting` $lhs_contracting `x` $rhs_contracting attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::mlir::Value":$acc,
                                 "::llvm::ArrayRef<int64_t>":$lhsBatch, "::llvm::ArrayRef<int64_t>":$rhsBatch,
                                 "::llvm::ArrayRef<int64_t>":$lhsContracting,
                                 "::llvm::ArrayRef<int64_t>":$rhsContracting,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
  let extraClassDeclaration = Titan_worksFromMemory # [{
    ::llvm::SmallVector<int64_t> getLhsFree();
    ::llvm::SmallVector<int64_t> getRhsFree();
    int64_t getFlops();
    int64_t getModelFlops() { return getFlops(); }
    ::llvm::SmallVector<unsigned> getNarrowOperands() { return {0, 1}; }
    ::titan::ir::ResultRounding getResultRounding(unsigned) { return ::titan::ir::ResultRounding::EndOfLayer; }
  }];
}

#endif // TITAN_OPS_CONTRACTION_TD
