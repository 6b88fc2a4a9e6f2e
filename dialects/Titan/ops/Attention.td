// Scaled dot-product attention, its gradient and rotary position embedding. Sequences are [batch, position, head, width] throughout, as projections
// leave them: no transposition stands between a linear layer and its heads.
#ifndef TITAN_OPS_ATTENTION_TD
#define TITAN_OPS_ATTENTION_TD

include "dialects/Titan/ops/Base.td"

class Titan_AttentionLikeOp<string mnemonic, dag between, dag out>
    : Titan_TensorOp<mnemonic, [AttrSizedOperandSegments, RandomOpInterface, ComputesNarrowOpInterface]> {
  let opArguments = !con((ins Titan_FloatTensor:$query, Titan_FloatTensor:$key, Titan_FloatTensor:$value), between,
                         (ins Optional<Titan_Tensor>:$mask, Optional<Titan_IntScalar>:$seed,
                              Optional<Titan_IntScalar>:$step, Optional<Index>:$base,
                              F64Attr:$scale, UnitAttr:$causal, DefaultValuedAttr<F64Attr, "0.0">:$p,
                              DefaultValuedAttr<I64Attr, "0">:$stream, OptionalAttr<Titan_WindowAttr>:$window,
                              OptionalAttr<F64Attr>:$fill));
  let results = out;
  let hasVerifier = 1;
  /// Heads are read where a projection left them, through strides.
  let extraClassDeclaration = Titan_worksFromMemory # [{
    bool readsStrided(unsigned) { return true; }
    int64_t getFlops();
    int64_t getModelFlops();
    bool draws() { return !getP().isZero(); }
    ::llvm::SmallVector<int64_t> getDrawnShape();
    ::llvm::SmallVector<int64_t> getDrawnDims(unsigned operand);
    ::llvm::SmallVector<::mlir::Value> makeDeterministic();
    ::llvm::SmallVector<unsigned> getNarrowOperands();
    ::titan::ir::ResultRounding getResultRounding(unsigned result);
  }];
}

def Titan_AttentionOp : Titan_AttentionLikeOp<"attention", (ins),
    (outs Titan_FloatTensor:$result, Titan_FloatTensor:$log_sum_exp, Optional<Titan_FloatTensor>:$largest)> {
  let summary = "dropout(softmax(scale * query key^T + mask)) value per head (Vaswani et al., arXiv:1706.03762)";
  let description = [{
    query [B, T, H, D], key [B, S, G, D], value [B, S, G, E] give [B, T, H, E]; query head h reads key head h / (H / G) (grouped-query
    attention where G < H). `mask` is [B or 1, H or 1, T or 1, S]: boolean (false is not attended) or floating (added to the scaled scores). With `causal` query
    i attends to keys 0..i only. A query that attends to nothing gives zero.

    With `fill` a boolean mask does not forbid: the score is `fill` where it is false. So a query whose keys are all masked attends to all of them
    alike, and neither the query nor the key gets a gradient through such a score.

    The second result is log(sum over keys of e^score) per query [B, H, T], in f32 (f64 for f64), before dropout; -inf where nothing is
    attended. With it the gradient recomputes probabilities block by block, and no [T, S] matrix is ever stored (Dao et al., arXiv:2205.14135).

    A floating mask or a `fill` may be so low that the sum is lost beside it: -1e9 + log 3 is -1e9. So there the third result is the largest score per
    query, 0 where nothing is attended, and the second log(sum over keys of e^(score - largest)).

    Scores, softmax and sums are f32 (f64 for f64). For narrower operands probabilities are rounded to the operands' type before they meet the values.

    Dropout of a probability as `titan.dropout` of the tensor [B, H, T, S]: `p`, `stream`, `seed`, `step`, `base` and `window` mean the same, element
    indices are those of that tensor, and the window's global shape is its.

    Constraints:
    - (C1) query, key and value have rank 4, one element type, equal batch; key and value equal positions and heads; query and key equal width;
      H is a multiple of G.
    - (C2) the mask is boolean or has the accumulation type, and has the shape above; `fill` is finite and beside a boolean mask.
    - (C3) the result is [B, T, H, E] of the operands' type, log_sum_exp [B, H, T] of the accumulation type. There is a largest score, of that type
      too, exactly with a floating mask or a `fill`.
    - (C4) random operands and the window as (C1) to (C4) of `titan.dropout`; no window, seed or step where p = 0.
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`seed` $seed^)? (`step` $step^)? (`base` $base^)?
    `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key, "::mlir::Value":$value,
                                 "::mlir::Value":$mask, "double":$scale, "bool":$causal,
                                 "::mlir::FloatAttr":$fill, "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
}

def Titan_AttentionGradOp : Titan_AttentionLikeOp<"attention_grad",
    (ins Titan_FloatTensor:$result, Titan_FloatTensor:$log_sum_exp, Titan_FloatTensor:$dresult, Optional<Titan_FloatTensor>:$largest),
    (outs Titan_FloatTensor:$dquery, Titan_FloatTensor:$dkey, Titan_FloatTensor:$dvalue)> {
  let summary = "adjoints of query, key and value of titan.attention";
  let description = [{
    With P = e^(score - log_sum_exp), or e^((score - largest) - log_sum_exp), dP = dresult value^T (through the dropout),
    delta = rowsum(dresult * result) and dS = P * (dP - delta), but 0 where the score is a `fill`:
    dquery = scale * dS key, dkey = scale * dS^T query, dvalue = dropout(P)^T dresult; key heads sum over the query heads that read them. For operands
    narrower than f32, P and dS are rounded to the operands' type before the products.

    Constraints: as `titan.attention`; (C5) dresult has the result's type; dquery, dkey and dvalue have the operands' types.
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value `result` $result `,` $log_sum_exp `,` $dresult (`largest` $largest^)? (`mask` $mask^)? (`seed` $seed^)? (`step` $step^)?
    (`base` $base^)? `scale` $scale (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Titan_RotaryOp : Titan_TensorOp<"rotary", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "rotates pairs of elements by the position's angles (Su et al., arXiv:2104.09864)";
  let description = [{
    operand [B, T, H, D]; cos and sin [T, R / 2] or [B, T, R / 2]. The first R elements of each head form R / 2 pairs (a, b): elements i and
    i + R / 2, or 2 i and 2 i + 1 when `interleaved`; they become (a cos - b sin, b cos + a sin), computed in the type of cos. Elements from R on pass.
    The adjoint is the rotation by the opposite angles.

    Constraints:
    - (C1) the operand has rank 4; cos and sin have equal types, rank 2 or 3, the operand's positions and, in rank 3, its batch or 1.
    - (C2) 0 < R <= D.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Titan_FloatTensor:$cos, Titan_FloatTensor:$sin, UnitAttr:$interleaved);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `,` $cos `,` $sin (`interleaved` $interleaved^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // TITAN_OPS_ATTENTION_TD
