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
  let summary = "(x - mean) * rstd [* scale] [+ bias] over some dimensions (Ba et al., arXiv:1607.06450)";
  let description = [{
    Mean and variance (biased) are taken over `dims`; rstd = 1 / sqrt(variance + epsilon). The second and third results are mean and rstd, of the
    operand's other dimensions, in f32 (f64 for f64).

    A norm of groups of channels or of instances is one too, over space and the channels of a group: `over [1, 2, 4]` of [N, height, width, G, C/G].

    Constraints:
    - (C1) dims are increasing and within the rank; there is one.
    - (C2) scale and bias have the shape of the dimensions in `dims`.
    - (C3) the result has the operand's type; mean and rstd have the shape of the dimensions that are not in `dims`.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Optional<Titan_FloatTensor>:$scale,
                         Optional<Titan_FloatTensor>:$bias, DenseI64ArrayAttr:$dims, F64Attr:$epsilon);
  let results = (outs Titan_FloatTensor:$result, Titan_FloatTensor:$mean, Titan_FloatTensor:$rstd);
  let assemblyFormat = [{
    $operand (`scale` $scale^)? (`bias` $bias^)? `over` $dims `epsilon` $epsilon attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "::mlir::Value":$scale, "::mlir::Value":$bias,
                                 "::llvm::ArrayRef<int64_t>":$dims, "double":$epsilon,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
  let extraClassDeclaration = [{
    /// The dimensions that are not in `dims`.
    ::llvm::SmallVector<int64_t> getKeptDims();
    /// Those in `dims` behind which is another one. None: rows are runs of memory. Sums over rows begin with them: a group of channels is short, and
    /// space is summed for all channels at once.
    ::llvm::ArrayRef<int64_t> getDimsApart();
  }];
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

def Titan_BatchNormOp : Titan_TensorOp<"batch_norm", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<EvaluatedOtherwiseOpInterface>]> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * scale + bias by the statistics of each channel (Ioffe and Szegedy, arXiv:1502.03167)";
  let description = [{
    Mean and variance (biased) are those of all elements of one index of `dim`: mean first, then the squared differences. They are the second and third
    results, in f32 (f64 for f64).

    `running` are a running mean and a running variance, where the model has them. They change nothing here: in evaluation they are the statistics, and a
    training step moves them, b' = (1 - momentum) b + momentum s, by the s of each microbatch in order. `unbiased` says that n / (n - 1) times the variance
    is the s of the running one. `batches`, if there is one, counts the microbatches that have moved them: PyTorch's num_batches_tracked.

    Constraints:
    - (C1) `dim` is within the rank; each index of it has 2 elements or more.
    - (C2) scale, bias and what is running have one element for each index of `dim`; running are two, and `batches` goes with them.
    - (C3) the result has the operand's type; mean and variance are of the accumulation type.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Titan_FloatTensor:$scale, Titan_FloatTensor:$bias, Variadic<Titan_FloatTensor>:$running,
                         Optional<Titan_IntScalar>:$batches,
                         I64Attr:$dim, F64Attr:$epsilon, F64Attr:$momentum, UnitAttr:$unbiased);
  let results = (outs Titan_FloatTensor:$result, Titan_FloatTensor:$mean, Titan_FloatTensor:$variance);
  let assemblyFormat = [{
    $operand `scale` $scale `bias` $bias (`running` $running^)? (`batches` $batches^)? `dim` $dim `epsilon` $epsilon `momentum` $momentum (`unbiased` $unbiased^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// All dimensions but `dim`, and the number of their elements.
    ::llvm::SmallVector<int64_t> getReducedDims();
    int64_t getCount();
  }];
}

#endif // TITAN_OPS_NORMALIZATION_TD
