// Softmax, layer normalisation and root-mean-square normalisation.
#ifndef TITAN_OPS_NORMALIZATION_TD
#define TITAN_OPS_NORMALIZATION_TD

include "dialects/Titan/ops/Base.td"

class Titan_SoftmaxLikeOp<string mnemonic, string opSummary>
    : Titan_TensorOp<mnemonic, [SameOperandsAndResultType]> {
  let summary = opSummary;
  let description = [{
    Constraints:
    - (C1) `dim` is within the rank.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, I64Attr:$dim);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand `dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Titan_SoftmaxOp : Titan_SoftmaxLikeOp<"softmax", "e^(x - max) / sum of the same, along `dim`">;
def Titan_LogSoftmaxOp : Titan_SoftmaxLikeOp<"log_softmax", "x - max - log(sum e^(x - max)), along `dim`">;

def Titan_LayerNormOp : Titan_TensorOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "(x - mean) * rstd [* scale] [+ bias] over the last dimensions (Ba et al., arXiv:1607.06450)";
  let description = [{
    Mean and variance (biased) are taken over the dimensions from `axis` on; rstd = 1 / sqrt(variance + epsilon). The second and third results
    are mean and rstd, of the operand's leading dimensions, in f32 (f64 for f64).

    Constraints:
    - (C1) 0 <= axis < rank.
    - (C2) scale and bias have the shape of the dimensions from `axis` on.
    - (C3) the result has the operand's type; mean and rstd have the shape of the dimensions before `axis`.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Optional<Titan_FloatTensor>:$scale,
                         Optional<Titan_FloatTensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Titan_FloatTensor:$result, Titan_FloatTensor:$mean, Titan_FloatTensor:$rstd);
  let assemblyFormat = [{
    $operand (`scale` $scale^)? (`bias` $bias^)? `axis` $axis `epsilon` $epsilon attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$scale, "::mlir::Value":$bias,
                                 "int64_t":$axis, "double":$epsilon,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_RmsNormOp : Titan_TensorOp<"rms_norm"> {
  let summary = "x * rstd [* scale] over the last dimensions, rstd = 1 / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich, arXiv:1910.07467)";
  let description = [{
    The mean is taken over the dimensions from `axis` on. The second result is rstd, of the operand's leading dimensions, in f32 (f64 for f64).

    Constraints:
    - (C1) 0 <= axis < rank.
    - (C2) scale has the shape of the dimensions from `axis` on.
    - (C3) the result has the operand's type; rstd has the shape of the dimensions before `axis`.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Optional<Titan_FloatTensor>:$scale, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Titan_FloatTensor:$result, Titan_FloatTensor:$rstd);
  let assemblyFormat = [{
    $operand (`scale` $scale^)? `axis` $axis `epsilon` $epsilon attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$scale, "int64_t":$axis, "double":$epsilon,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

#endif // TITAN_OPS_NORMALIZATION_TD
