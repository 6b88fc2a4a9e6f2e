// Sums whose bits do not depend on the order of addition.
#ifndef TITAN_OPS_EXACT_SUM_TD
#define TITAN_OPS_EXACT_SUM_TD

include "dialects/Titan/ops/Base.td"

def Titan_ExactSumOp : Titan_TensorOp<"exact_sum"> {
  let summary = "the sum of all elements as an integer of ten words: nothing is rounded";
  let description = [{
    A finite f32 is an integer in units of 2^-149, of less than 2^277. Its nine digits to the base 2^32, each with the sign of the element, are added to
    words 0 to 8, the lowest digit to word 0. An element that is infinite or NaN adds 1 to word 9, and nothing to the others. Where floats are
    held in f64, what an element has below 2^-149 is left out, and one of 2^128 or more counts as infinite.

    Words are sums of integers. So the words of a whole are the sums of the words of its parts, bit for bit, however the elements are divided and in
    whatever order they come. Words of 2^31 elements together do not overflow.

    Constraints:
    - (C1) the operand has at most 2^31 elements.
    - (C2) the result is `tensor<10xi64>`.

    ```mlir
    %words = titan.exact_sum %rows : tensor<768xf32> to tensor<10xi64>
    ```
  }];
  let opArguments = (ins StaticShapeTensorOf<[F32]>:$operand);
  let results = (outs StaticShapeTensorOf<[I64]>:$words);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($words)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$operand,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_ExactValueOp : Titan_TensorOp<"exact_value"> {
  let summary = "the number that the words of titan.exact_sum stand for, rounded once";
  let description = [{
    The nearest f32, of two the even one; infinite from 2^128 on. A sum of zero is +0. If word 9 is not 0, the result is NaN.

    Constraints:
    - (C1) the operand is `tensor<10xi64>`.

    ```mlir
    %sum = titan.exact_value %words : tensor<10xi64> to tensor<f32>
    ```
  }];
  let opArguments = (ins StaticShapeTensorOf<[I64]>:$words);
  let results = (outs Titan_F32Scalar:$result);
  let assemblyFormat = "$words attr-dict `:` type($words) `to` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$words,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

#endif // TITAN_OPS_EXACT_SUM_TD
