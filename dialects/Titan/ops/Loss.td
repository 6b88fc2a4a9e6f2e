// Losses. Each gives one value per target; sums, valid counts and means are ordinary ops around them.
#ifndef TITAN_OPS_LOSS_TD
#define TITAN_OPS_LOSS_TD

include "dialects/Titan/ops/Base.td"

def Titan_CrossEntropyOp : Titan_TensorOp<"cross_entropy"> {
  let summary = "-log softmax(logits)[target], per target; 0 where the target is `ignore_index`";
  let description = [{
    With smoothing s and C classes: (1 - s) * nll(target) + s / C * sum over classes of nll, as PyTorch's `label_smoothing`.
    The classes are the last dimension.

    Constraints:
    - (C1) targets are integers with the shape of the logits' leading dimensions; the loss has that shape, in f32 (f64 for f64).
    - (C2) 0 <= label_smoothing <= 1.
  }];
  let opArguments = (ins Titan_FloatTensor:$logits, Titan_IntTensor:$targets, I64Attr:$ignore_index,
                         F64Attr:$label_smoothing);
  let results = (outs Titan_FloatTensor:$loss);
  let assemblyFormat = [{
    $logits `,` $targets `ignore_index` $ignore_index `label_smoothing` $label_smoothing attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Titan_CrossEntropyGradOp : Titan_TensorOp<"cross_entropy_grad", [AllTypesMatch<["logits", "result"]>]> {
  let summary = "adjoint of the logits of titan.cross_entropy: dloss * (softmax - target distribution)";
  let description = [{
    Constraints: as `titan.cross_entropy`; (C3) `dloss` has the loss's type.
  }];
  let opArguments = (ins Titan_FloatTensor:$logits, Titan_IntTensor:$targets, Titan_FloatTensor:$dloss,
                         I64Attr:$ignore_index, F64Attr:$label_smoothing);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $targets `,` $dloss `ignore_index` $ignore_index `label_smoothing` $label_smoothing attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Titan_BceWithLogitsOp : Titan_TensorOp<"bce_with_logits", [SameOperandsAndResultType]> {
  let summary = "binary cross-entropy of sigmoid(x) and target t: max(x, 0) - x t + log1p(e^-|x|), elementwise";
  let opArguments = (ins Titan_FloatTensor:$logits, Titan_FloatTensor:$targets);
  let results = (outs Titan_FloatTensor:$loss);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` type($loss)";
  let extraClassDeclaration = Titan_workIsPointwise;
}

#endif // TITAN_OPS_LOSS_TD
