// Convolution and its two gradients, channels last.
#ifndef TITAN_OPS_CONVOLUTION_TD
#define TITAN_OPS_CONVOLUTION_TD

include "dialects/Titan/ops/Base.td"

/// The three ops are the partial derivatives of one form that is linear in the operand, the kernel and the gradient of the result.
class Titan_Convolution<string mnemonic, list<Trait> traits = []>
    : Titan_TensorOp<mnemonic, !listconcat([ComputesNarrowOpInterface], traits)> {
  dag windowArguments = (ins DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                             DenseI64ArrayAttr:$dilations, I64Attr:$groups);
  let results = (outs Titan_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_worksFromMemory # [{
    ::titan::ir::ConvolutionShape getConvolutionShape();
    int64_t getFlops() { return getConvolutionShape().flops(); }
    int64_t getModelFlops() { return getFlops(); }
    ::llvm::SmallVector<unsigned> getNarrowOperands() { return {0, 1}; }
    ::titan::ir::ResultRounding getResultRounding(unsigned) { return ::titan::ir::ResultRounding::EndOfLayer; }
  }];
}

def Titan_ConvolutionOp : Titan_Convolution<"convolution"> {
  let summary = "sums of products of a kernel with windows of the operand";
  let description = [{
    operand [N, space..., g C] and kernel [g O, taps..., C], g = `groups`, give [N, positions..., g O]: element (n, p, o) is the sum over taps t and
    channels c of operand[n, p * strides + t * dilations - low, c] * kernel[o, t, c], c among the channels of o's group. Outside of the operand is 0; `low` and
    `high` say how far it goes on before and behind. Sums are in f32 (f64 for f64), which is also the result's type.

    Constraints:
    - (C1) operand and kernel have one rank, 3 or more; the lists have one entry for each dimension of space; strides and dilations are positive, `low` and
      `high` are not negative.
    - (C2) `groups` divides both numbers of channels; the kernel has C channels.
    - (C3) operand and kernel have the same element type; the result's is f64 for f64 and f32 otherwise.
    - (C4) a window is not larger than the padded operand; the result's shape is the one above.

    ```mlir
    %y = titan.convolution %x, %w strides [1, 1] low [1, 1] high [1, 1] dilations [1, 1] groups 1
       : (tensor<8x32x32x64xf32>, tensor<128x3x3x64xf32>) -> tensor<8x32x32x128xf32>
    ```
  }];
  let opArguments = !con((ins Titan_FloatTensor:$operand, Titan_FloatTensor:$kernel), windowArguments);
  let assemblyFormat = [{
    $operand `,` $kernel `strides` $strides `low` $low `high` $high `dilations` $dilations `groups` $groups attr-dict
    `:` functional-type(operands, $result)
  }];
}

def Titan_ConvolutionInputGradOp : Titan_Convolution<"convolution_input_grad"> {
  let summary = "adjoint of the operand of titan.convolution; also a transposed convolution";
  let description = [{
    dresult [N, positions..., g O] and kernel [g O, taps..., C] give [N, space..., g C]. The result's type says how many elements a stride has lost at the end.

    Constraints:
    - (C1) dresult and kernel have one rank, 3 or more; the lists have one entry for each dimension of space; strides and dilations are positive, `low` and
      `high` are not negative.
    - (C2) `groups` divides both numbers of channels; the kernel has C channels.
    - (C3) dresult and kernel have the same element type; the result's is f64 for f64 and f32 otherwise.
    - (C4) titan.convolution of the result with the kernel has dresult's shape.
  }];
  let opArguments = !con((ins Titan_FloatTensor:$dresult, Titan_FloatTensor:$kernel), windowArguments);
  let assemblyFormat = [{
    $dresult `,` $kernel `strides` $strides `low` $low `high` $high `dilations` $dilations `groups` $groups attr-dict
    `:` functional-type(operands, $result)
  }];
}

def Titan_ConvolutionKernelGradOp : Titan_Convolution<"convolution_kernel_grad", [AccumulatingOpInterface]> {
  let summary = "adjoint of the kernel of titan.convolution, plus an accumulator";
  let description = [{
    operand [N, space..., g C] and dresult [N, positions..., g O] give [g O, taps..., C]. With `acc` the result is `acc` + the sum, rounded once more.

    Constraints:
    - (C1) operand and dresult have one rank, 3 or more; the lists have one entry for each dimension of space; strides and dilations are positive, `low` and
      `high` are not negative.
    - (C2) `groups` divides both numbers of channels; the result has C channels.
    - (C3) operand and dresult have the same element type; the result's is f64 for f64 and f32 otherwise.
    - (C4) titan.convolution of the operand with the result has dresult's shape; `acc` has the result's type.
  }];
  let opArguments = !con((ins Titan_FloatTensor:$operand, Titan_FloatTensor:$dresult, Optional<Titan_FloatTensor>:$acc), windowArguments);
  let assemblyFormat = [{
    $operand `,` $dresult (`acc` $acc^)? `strides` $strides `low` $low `high` $high `dilations` $dilations `groups` $groups attr-dict
    `:` functional-type(operands, $result)
  }];
}

#endif // TITAN_OPS_CONVOLUTION_TD
