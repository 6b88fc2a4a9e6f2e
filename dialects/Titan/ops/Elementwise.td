// Elementwise ops: every operand and result has the same shape; every dimension is one parallel factor.
#ifndef TITAN_OPS_ELEMENTWISE_TD
#define TITAN_OPS_ELEMENTWISE_TD

include "dialects/Titan/ops/Base.td"

/// The result is the i1 tensor of the operand's shape.
class Titan_BoolResultOf<string operand> : TypesMatchWith<
    "result is an i1 tensor of the operand's shape", operand, "result",
    "::llvm::cast<::mlir::RankedTensorType>($_self).clone(::mlir::IntegerType::get($_self.getContext(), 1))">;

class Titan_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Titan_TensorOp<mnemonic, !listconcat(traits, [SameOperandsAndResultShape])> {
  let extraClassDeclaration = Titan_workIsPointwise;
}

//===----------------------------------------------------------------------===//
// Unary
//===----------------------------------------------------------------------===//

class Titan_UnaryOp<string mnemonic, string opSummary, Type type = Titan_FloatTensor>
    : Titan_ElementwiseOp<mnemonic, [SameOperandsAndResultType]> {
  let summary = opSummary;
  let opArguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Titan_NegOp : Titan_UnaryOp<"neg", "-x", Titan_NumberTensor> { let hasFolder = 1; }
def Titan_AbsOp : Titan_UnaryOp<"abs", "|x|; the derivative at 0 is 0", Titan_NumberTensor>;
def Titan_SignOp : Titan_UnaryOp<"sign", "-1, 0 or 1; NaN stays NaN", Titan_NumberTensor>;
def Titan_FloorOp : Titan_UnaryOp<"floor", "largest integer not above x">;
def Titan_CeilOp : Titan_UnaryOp<"ceil", "smallest integer not below x">;
def Titan_RoundOp : Titan_UnaryOp<"round", "nearest integer, halves to even">;
def Titan_ExpOp : Titan_UnaryOp<"exp", "e^x">;
def Titan_Expm1Op : Titan_UnaryOp<"expm1", "e^x - 1, accurate near 0">;
def Titan_LogOp : Titan_UnaryOp<"log", "natural logarithm">;
def Titan_Log1pOp : Titan_UnaryOp<"log1p", "log(1 + x), accurate near 0">;
def Titan_SqrtOp : Titan_UnaryOp<"sqrt", "square root">;
def Titan_RsqrtOp : Titan_UnaryOp<"rsqrt", "1 / sqrt(x): the correctly rounded quotient of the rounded root">;
def Titan_SinOp : Titan_UnaryOp<"sin", "sine of radians">;
def Titan_CosOp : Titan_UnaryOp<"cos", "cosine of radians">;
def Titan_AtanOp : Titan_UnaryOp<"atan", "angle in radians, within a quarter turn, whose tangent is x">;
def Titan_TanhOp : Titan_UnaryOp<"tanh", "hyperbolic tangent">;
def Titan_SigmoidOp : Titan_UnaryOp<"sigmoid", "1 / (1 + e^-x)">;
def Titan_ErfOp : Titan_UnaryOp<"erf", "error function">;
def Titan_ReluOp : Titan_UnaryOp<"relu", "max(x, 0); NaN stays NaN; the derivative at 0 is 0"> { let hasFolder = 1; }
def Titan_SiluOp : Titan_UnaryOp<"silu", "x * sigmoid(x)">;
def Titan_SoftplusOp : Titan_UnaryOp<"softplus", "log(1 + e^x), as max(x, 0) + log1p(e^-|x|)">;
def Titan_NotOp : Titan_UnaryOp<"not", "logical negation", Titan_BoolTensor> { let hasFolder = 1; }

def Titan_DetachOp : Titan_TensorOp<"detach", [SameOperandsAndResultShape, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<EvaluatedOtherwiseOpInterface>]> {
  let summary = "x, through which no gradient passes";
  let description = [{
    The model's `detach()`. What reaches the loss through it alone is not trained. It is in models only: differentiation replaces it by its operand.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_workIsView;
}

def Titan_GeluOp : Titan_ElementwiseOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "Gaussian error linear unit (Hendrycks and Gimpel, arXiv:1606.08415)";
  let description = [{
    `erf`: x/2 (1 + erf(x / sqrt 2)). `tanh`: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Titan_GeluFormAttr:$form);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$form $operand attr-dict `:` type($result)";
}

def Titan_LeakyReluOp : Titan_ElementwiseOp<"leaky_relu", [SameOperandsAndResultType]> {
  let summary = "x for x > 0, alpha * x otherwise";
  let opArguments = (ins Titan_FloatTensor:$operand, F64Attr:$alpha);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand `alpha` $alpha attr-dict `:` type($result)";
}

def Titan_EluOp : Titan_ElementwiseOp<"elu", [SameOperandsAndResultType]> {
  let summary = "x for x > 0, alpha * (e^x - 1) otherwise";
  let opArguments = (ins Titan_FloatTensor:$operand, F64Attr:$alpha);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand `alpha` $alpha attr-dict `:` type($result)";
}

def Titan_HardSigmoidOp : Titan_ElementwiseOp<"hard_sigmoid", [SameOperandsAndResultType]> {
  let summary = "max(0, min(1, alpha * x + beta)); the derivative is alpha strictly between, 0 elsewhere";
  let opArguments = (ins Titan_FloatTensor:$operand, F64Attr:$alpha, F64Attr:$beta);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand `alpha` $alpha `beta` $beta attr-dict `:` type($result)";
}

def Titan_IsFiniteOp : Titan_ElementwiseOp<"is_finite", [Titan_BoolResultOf<"operand">]> {
  let summary = "neither infinite nor NaN";
  let opArguments = (ins Titan_FloatTensor:$operand);
  let results = (outs Titan_BoolTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase), [{
    auto type = ::llvm::cast<::mlir::RankedTensorType>(operand.getType());
    build($_builder, $_state, type.clone($_builder.getI1Type()), operand, path, phase);
  }]>];
}

def Titan_ConvertOp : Titan_ElementwiseOp<"convert"> {
  let summary = "changes the element type";
  let description = [{
    Float to float rounds to nearest even; float to integer truncates toward zero (out of range: saturates, NaN: 0); to i1 is `x != 0`;
    integer to integer truncates or extends by the source's signedness (i1 extends as 0/1).
  }];
  let opArguments = (ins Titan_Tensor:$operand);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `to` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Binary and ternary
//===----------------------------------------------------------------------===//

class Titan_BinaryOp<string mnemonic, string opSummary, Type type = Titan_NumberTensor, list<Trait> traits = []>
    : Titan_ElementwiseOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType])> {
  let summary = opSummary;
  let opArguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Titan_AddOp : Titan_BinaryOp<"add", "x + y", Titan_NumberTensor, [Commutative]> { let hasFolder = 1; }
def Titan_SubOp : Titan_BinaryOp<"sub", "x - y"> { let hasFolder = 1; }
def Titan_MulOp : Titan_BinaryOp<"mul", "x * y", Titan_NumberTensor, [Commutative]> { let hasFolder = 1; }
def Titan_DivOp : Titan_BinaryOp<"div", "x / y; integers truncate toward zero"> {
  let description = [{
    Of integers x / 0 is 0, and the least number by -1 is itself.
  }];
  let hasFolder = 1;
}
def Titan_MaxOp : Titan_BinaryOp<"max", "larger; NaN wins; equal operands share the adjoint in halves", Titan_NumberTensor, [Commutative]>;
def Titan_MinOp : Titan_BinaryOp<"min", "smaller; NaN wins; equal operands share the adjoint in halves", Titan_NumberTensor, [Commutative]>;
def Titan_PowOp : Titan_BinaryOp<"pow", "x^y", Titan_FloatTensor> {
  let description = [{
    C's `pow`. The derivative by y is x^y log x where x > 0, and 0 elsewhere; by x it is y x^(y-1), 0 where y is 0.
  }];
}
def Titan_RemOp : Titan_BinaryOp<"rem", "x - q y for the quotient q, truncated toward zero", Titan_FloatTensor> {
  let description = [{
    C's `fmod`, which is exact: the sign of x, or of zero, and less than |y|. NaN where y is 0 or x is infinite. The derivative by x is 1, by y it is -q.
  }];
}
def Titan_AndOp : Titan_BinaryOp<"and", "logical and", Titan_BoolTensor, [Commutative]> { let hasFolder = 1; }
def Titan_OrOp : Titan_BinaryOp<"or", "logical or", Titan_BoolTensor, [Commutative]> { let hasFolder = 1; }

def Titan_CompareOp : Titan_ElementwiseOp<"compare", [SameTypeOperands, Titan_BoolResultOf<"lhs">]> {
  let summary = "x <predicate> y; comparisons with NaN are false, but for ne";
  let opArguments = (ins Titan_ComparePredicateAttr:$predicate, Titan_Tensor:$lhs, Titan_Tensor:$rhs);
  let results = (outs Titan_BoolTensor:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
  let builders = [OpBuilder<(ins "::titan::ir::ComparePredicate":$predicate, "::mlir::Value":$lhs,
                                 "::mlir::Value":$rhs,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase), [{
    auto type = ::llvm::cast<::mlir::RankedTensorType>(lhs.getType());
    build($_builder, $_state, type.clone($_builder.getI1Type()),
          ComparePredicateAttr::get($_builder.getContext(), predicate), lhs, rhs, path, phase);
  }]>];
}

def Titan_SelectOp : Titan_ElementwiseOp<"select", [AllTypesMatch<["onTrue", "onFalse", "result"]>]> {
  let summary = "onTrue where the condition holds, onFalse elsewhere";
  let opArguments = (ins Titan_BoolTensor:$condition, Titan_Tensor:$onTrue, Titan_Tensor:$onFalse);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$condition `,` $onTrue `,` $onFalse attr-dict `:` type($condition) `,` type($result)";
  let hasFolder = 1;
}

#endif // TITAN_OPS_ELEMENTWISE_TD
