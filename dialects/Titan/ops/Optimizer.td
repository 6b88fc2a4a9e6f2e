// Optimizer updates and the learning-rate schedule.
#ifndef TITAN_OPS_OPTIMIZER_TD
#define TITAN_OPS_OPTIMIZER_TD

include "dialects/Titan/ops/Base.td"

def Titan_ScheduleOp : Titan_Op<"schedule", [Pure]> {
  let summary = "the learning rate of a step";
  let description = [{
    With w = warmup, n = steps, r = min_ratio, s = step (0 for the first), t = clamp((s - w) / max(1, n - w), 0, 1):
    lr * (s + 1) / w while s < w; then lr * f(t), with f = 1 (constant), r + (1 - r) (1 + cos(pi t)) / 2 (cosine), 1 - (1 - r) t (linear),
    1 up to t = 0.8 and then 1 - (1 - r) (t - 0.8) / 0.2 (wsd).
  }];
  let opArguments = (ins Titan_IntScalar:$step, Titan_F32Scalar:$lr, Titan_IntScalar:$warmup,
                         Titan_IntScalar:$steps, Titan_F32Scalar:$min_ratio, Titan_ScheduleKindAttr:$kind);
  let results = (outs Titan_F32Scalar:$result);
  let assemblyFormat = "$kind $step `,` $lr `,` $warmup `,` $steps `,` $min_ratio attr-dict";
}

// Elementwise in its tensors: a part of the parameter needs that part of the others alone.
class Titan_UpdateOp<string mnemonic, list<Trait> traits = []>
    : Titan_Op<mnemonic, !listconcat(traits, [Pure, UpdateOpInterface,
                                              DeclareOpInterfaceMethods<ShardableOpInterface>])>;

def Titan_SgdOp : Titan_UpdateOp<"sgd", []> {
  let summary = "stochastic gradient descent with momentum, as torch.optim.SGD";
  let description = [{
    g = scale * gradient + weight_decay * p; with a momentum slot: v' = momentum * v + g, g = v' (nesterov: g + momentum * v');
    p' = p - lr_scale * lr * g. Where `apply` is false, results are the operands.

    Constraints:
    - (C1) momentum buffer operand and result come together; all tensors have the parameter's type.
  }];
  let opArguments = (ins Titan_FloatTensor:$param, Titan_FloatTensor:$gradient,
                         Optional<Titan_FloatTensor>:$momentum_buffer,
                         Titan_F32Scalar:$lr, Titan_F32Scalar:$weight_decay, Titan_F32Scalar:$scale,
                         Titan_BoolScalar:$apply,
                         F64Attr:$momentum, BoolAttr:$nesterov, F64Attr:$lr_scale);
  let results = (outs Titan_FloatTensor:$new_param, Optional<Titan_FloatTensor>:$new_momentum_buffer);
  let assemblyFormat = [{
    $param `,` $gradient (`momentum_buffer` $momentum_buffer^)? `lr` $lr `weight_decay` $weight_decay `scale` $scale `apply` $apply
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Titan_AdamOp : Titan_UpdateOp<"adam", [AllTypesMatch<["param", "gradient", "exp_avg", "exp_avg_sq",
                                                           "new_param", "new_exp_avg", "new_exp_avg_sq"]>]> {
  let summary = "Adam (Kingma and Ba, arXiv:1412.6980) and AdamW (Loshchilov and Hutter, arXiv:1711.05101)";
  let description = [{
    With t the number of applied updates before this one: g = scale * gradient, plus weight_decay * p unless `decoupled`;
    decoupled: p = p * (1 - lr_scale * lr * weight_decay) first; m' = m + (1 - beta1) (g - m); v' = beta2 * v + (1 - beta2) g^2;
    p' = p - lr_scale * lr / (1 - beta1^(t+1)) * m' / (sqrt(v') / sqrt(1 - beta2^(t+1)) + epsilon).
    As torch.optim.Adam and AdamW. Where `apply` is false, results are the operands. The two bias corrections are computed in f64.
  }];
  let opArguments = (ins Titan_FloatTensor:$param, Titan_FloatTensor:$gradient, Titan_FloatTensor:$exp_avg,
                         Titan_FloatTensor:$exp_avg_sq, Titan_F32Scalar:$lr, Titan_F32Scalar:$weight_decay,
                         Titan_F32Scalar:$scale, Titan_IntScalar:$t, Titan_BoolScalar:$apply,
                         F64Attr:$beta1, F64Attr:$beta2, F64Attr:$epsilon, BoolAttr:$decoupled, F64Attr:$lr_scale);
  let results = (outs Titan_FloatTensor:$new_param, Titan_FloatTensor:$new_exp_avg,
                      Titan_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat = [{
    $param `,` $gradient `,` $exp_avg `,` $exp_avg_sq `lr` $lr `weight_decay` $weight_decay `scale` $scale `t` $t `apply` $apply
    attr-dict `:` type($param)
  }];
}

#endif // TITAN_OPS_OPTIMIZER_TD
