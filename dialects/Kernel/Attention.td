// The attention routine of kernel.call: extents, and where in the operands each tensor lies.
#ifndef KERNEL_ATTENTION_TD
#define KERNEL_ATTENTION_TD

def Kernel_ViewAttr : AttrDef<Kernel_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "a tensor [batch, row, head, width] inside of an operand: element offset and strides; the width is contiguous";
  let description = [{
    `operand` counts `ins` for what is read and `outs` for what is written. Query, key and value may so be parts of one projection [B, T, 3 C], and
    their gradients of one tensor.
  }];
  let parameters = (ins "int64_t":$operand, "int64_t":$offset, "int64_t":$batch, "int64_t":$row, "int64_t":$head);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_AttentionMaskAttr : AttrDef<Kernel_Dialect, "AttentionMask"> {
  let mnemonic = "attention_mask";
  let summary = "the mask [batch, head, row, key]: strides in elements (0 where it is broadcast); keys are contiguous";
  let description = [{
    Boolean masks say what is attended to, others are added to the scaled scores; the operand's element type tells. With `fill` the score is that
    number where a boolean mask is false.
  }];
  let parameters = (ins "int64_t":$operand, "bool":$boolean, "int64_t":$batch, "int64_t":$head, "int64_t":$row,
                        OptionalParameter<"::mlir::FloatAttr">:$fill);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_AttentionDropoutAttr : AttrDef<Kernel_Dialect, "AttentionDropout"> {
  let mnemonic = "attention_dropout";
  let summary = "dropout of the probabilities as titan.dropout of a tensor [B, H, T, S]";
  let description = [{
    `seed` and `step` are 0-d i64 `ins`, or -1 where both count as 0. `global` is the shape of the whole tensor; the call's part of it begins at the
    element that the only scalar says, which `multiple` divides. Where `multiple` is 0 there is no scalar, and the part begins at 0.
  }];
  let parameters = (ins "::mlir::FloatAttr":$p, "int64_t":$stream, "int64_t":$seed, "int64_t":$step,
                        ArrayRefParameter<"int64_t">:$global, "int64_t":$multiple);
  let assemblyFormat = "`<` `p` `=` $p `,` `stream` `=` $stream `,` `seed` `=` $seed `,` `step` `=` $step `,` `global` `=` `[` $global `]` `,` `multiple` `=` $multiple `>`";
}

def Kernel_AttentionGradientAttr : AttrDef<Kernel_Dialect, "AttentionGradient"> {
  let mnemonic = "attention_gradient";
  let summary = "what the backward routine reads and writes besides";
  let description = [{
    The adjoint of the result is read; those of query, key and value are written. `workspace` is an out in the accumulation type for the sums over
    queries, `blocks.workspace` elements; -1 where they stand in the outs themselves.
  }];
  let parameters = (ins "::titan::kernel::ViewAttr":$dresult, "::titan::kernel::ViewAttr":$dquery,
                        "::titan::kernel::ViewAttr":$dkey, "::titan::kernel::ViewAttr":$dvalue, "int64_t":$workspace);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_AttentionBlocksAttr : AttrDef<Kernel_Dialect, "AttentionBlocks"> {
  let mnemonic = "attention_blocks";
  let summary = "how the routine cuts its work, as *lower* chose it for the machine";
  let description = [{
    `rows` queries and `keys` keys at most are a block. A row of sums over queries has its columns rounded up to `padding`, whole vectors of
    the target; 0 where the target has these sums in registers. `workspace` is the number of elements that the backward routine has for these
    sums in memory; 0 where they stand in the outs or in registers.

    `rows` is a multiple of `keys` and of `padding`, if there is one; `keys` is a multiple of 8, of which one Philox block decides the dropout.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$keys, "int64_t":$padding, "int64_t":$workspace);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_AttentionAttr : AttrDef<Kernel_Dialect, "Attention", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "attention";
  let summary = "titan.attention or, with `gradient`, titan.attention_grad; no [T, S] matrix is written to memory";
  let description = [{
    query [batch, queries, heads, width], key [batch, keys, keyHeads, width], value [batch, keys, keyHeads, valueWidth] and result
    [batch, queries, heads, valueWidth] are views, all of type `element`. The forward routine writes `result` and `logSumExp` to outs, the backward
    routine reads both from ins. log_sum_exp [batch, heads, queries] is contiguous and, like an additive mask, of the accumulation type: f32, or f64 for f64.
    So is `largest`, beside an additive mask or a `fill`; else it is -1.

    A unit is a block of query rows of one head (forward) or one key head with all of its query heads (backward). `blocks` decides the order of sums,
    and with it bits; what is computed does not depend on it.
  }];
  let parameters = (ins "int64_t":$batch, "int64_t":$heads, "int64_t":$keyHeads, "int64_t":$queries, "int64_t":$keys,
    "int64_t":$width, "int64_t":$valueWidth, "::mlir::Type":$element, "::mlir::FloatAttr":$scale, "bool":$causal,
    "::titan::kernel::ViewAttr":$query, "::titan::kernel::ViewAttr":$key, "::titan::kernel::ViewAttr":$value,
    "::titan::kernel::ViewAttr":$result, "int64_t":$logSumExp, DefaultValuedParameter<"int64_t", "-1">:$largest,
    "::titan::kernel::AttentionBlocksAttr":$blocks,
    OptionalParameter<"::titan::kernel::AttentionMaskAttr">:$mask,
    OptionalParameter<"::titan::kernel::AttentionDropoutAttr">:$dropout,
    OptionalParameter<"::titan::kernel::AttentionGradientAttr">:$gradient);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Elements of a row of sums for `width` columns: rounded up to `blocks.padding`.
    int64_t padded(int64_t width) const;
    /// Are there masks of numbers, so that the largest score of a query is a statistic of its own?
    bool keepsLargest() const { return getMask() && (!getMask().getBoolean() || getMask().getFill()); }
    /// The type that scores, softmax and sums have.
    ::mlir::FloatType getAccumulation() const;
    /// Elements of the backward routine's sums over queries, of all key heads: what a workspace holds.
    int64_t getSumElements() const;
    /// Have the outs the type and the padded width of these sums, or do they need no memory at all?
    bool canSumInOuts() const;
  }];
}

#endif // KERNEL_ATTENTION_TD
