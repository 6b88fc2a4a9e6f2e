"""Records what PyTorch computes for the op instances of test/dialects/titan-ops.mlir.

    python test/interpreter/record_references.py            writes references.json beside this file

All in float64. Each case is a list of runs; a run has the arguments and the results of the function of that name, in order, flat
and row-major. Optimizer cases are the steps of one training: the state after a step is an argument of the next.
"""
import json
import math
from fractions import Fraction
from pathlib import Path

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(20260701)


def normal(*shape):
    return torch.randn(*shape, generator=generator)


def away_from(kinks, *shape):
    """Draws that are at least 1e-2 away from every kink: ten steps of the gradient test and more."""
    x = normal(*shape)
    for kink in kinks:
        x = torch.where((x - kink).abs() < 1e-2, x + 3e-2, x)
    return x


def positive(*shape):
    return normal(*shape).abs() + 0.1


def integers(low, high, *shape):
    return torch.randint(low, high, shape, generator=generator)


def flags(*shape):
    return integers(0, 2, *shape).bool()


special = torch.tensor([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan])
rows, matrix = (3, 4), (4, 6)
cases = {}


def case(name, function, *arguments):
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    cases.setdefault(name, []).append({"arguments": [pack(a) for a in arguments], "results": [pack(r) for r in results]})
    return results


def pack(value):
    tensor = torch.as_tensor(value)
    if tensor.dtype == torch.bool:
        tensor = tensor.to(torch.int64)
    # JSON has no infinities and NaN.
    return [x if not isinstance(x, float) or math.isfinite(x) else str(x) for x in tensor.reshape(-1).tolist()]


def unary():
    smooth = {"neg": torch.neg, "exp": torch.exp, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh,
              "sigmoid": torch.sigmoid, "erf": torch.erf, "silu": F.silu, "softplus": F.softplus, "gelu_erf": F.gelu,
              "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}
    for name, function in smooth.items():
        case(name, function, normal(*rows))
    at_zero = {"abs": torch.abs, "sign": torch.sign, "relu": F.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
               "elu": lambda x: F.elu(x, 1.5)}
    for name, function in at_zero.items():
        case(name, function, away_from([0], *rows))
    for name, function in {"log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}.items():
        case(name, function, positive(*rows))
    whole = away_from([-2, -1, 0, 1, 2, -1.5, -0.5, 0.5, 1.5], *rows)
    for name, function in {"floor": torch.floor, "ceil": torch.ceil, "round": torch.round}.items():
        case(name, function, whole)
    case("hard_sigmoid", lambda x: (0.2 * x + 0.5).clamp(0, 1), 3 * away_from([-2.5 / 3, 2.5 / 3], *rows))
    case("neg_integer", torch.neg, integers(-9, 9, 6))
    case("not", torch.logical_not, flags(6))
    case("is_finite", torch.isfinite, special)
    case("convert_float", lambda x: x, normal(*rows))
    case("convert_to_integer", lambda x: x.trunc().to(torch.int64), torch.tensor([0.9, -0.9, 2.5, -3.7, 100.0, -0.0]))
    case("convert_to_integer", lambda x: torch.tensor([2**31 - 1, -2**31, 0, 2**31 - 1, -2**31, 0]),
         torch.tensor([3e9, -3e9, math.nan, math.inf, -math.inf, 0.0]))
    case("convert_to_boolean", lambda x: x != 0, torch.tensor([0.0, 0.2, -0.0, math.nan, 5.0, -1.0]))
    case("convert_boolean", lambda x: x.double(), flags(6))
    case("convert_narrowing", lambda x: x.to(torch.int8).to(torch.int64), torch.tensor([0, 127, 128, 255, -129, 1000]))


def binary():
    for name, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "max": torch.maximum,
                           "min": torch.minimum}.items():
        case(name, function, normal(*rows), normal(*rows))
    case("div", torch.div, normal(*rows), positive(*rows))
    case("pow", torch.pow, positive(*rows), normal(*rows))
    case("square", torch.square, normal(*rows))
    case("add_integer", torch.add, integers(-9, 9, 6), integers(-9, 9, 6))
    case("div_integer", lambda x, y: torch.div(x, y, rounding_mode="trunc"), torch.tensor([7, -7, 7, -7, 0, 9]),
         torch.tensor([2, 2, -2, -2, 3, -1]))
    case("and", torch.logical_and, flags(6), flags(6))
    case("or", torch.logical_or, flags(6), flags(6))
    case("compare_lt", torch.lt, special, torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.0]))
    case("compare_eq", torch.eq, integers(0, 3, 6), integers(0, 3, 6))
    case("select", torch.where, flags(*rows), normal(*rows), normal(*rows))


def shape():
    case("constant", lambda: torch.tensor([[1.0, -2.5, 3.0], [0.0, 1e3, 7.0]]))
    case("constant_splat", lambda: torch.full((4, 2), 0.5))
    case("barrier", lambda x, y: (x, y), normal(*rows), normal(2))
    case("reshape", lambda x: x.reshape(2, 12), normal(4, 6))
    case("reshape_merge", lambda x: x.reshape(12, 2), normal(4, 3, 2))
    case("transpose", lambda x: x.permute(2, 0, 1), normal(2, 3, 4))
    case("broadcast", lambda x: x.reshape(1, 4, 1).expand(2, 4, 3), normal(4))
    case("concat", lambda x, y: torch.cat([x, y], 1), normal(4, 2), normal(4, 3))
    case("slice", lambda x: x[:, 1::3], normal(4, 9))

    def pad(x):
        result = torch.full((4, 9), 2.5)
        result[:, 1::3] = x
        return result
    case("pad", pad, normal(4, 3))
    case("iota", lambda: torch.arange(3).expand(4, 3))


def contraction_and_reduction():
    case("contract", lambda x, w: x @ w.T, normal(4, 6), normal(8, 6))
    case("contract_acc", lambda x, w, a: a + x.T @ w, normal(4, 6), normal(4, 2), normal(6, 2))
    case("contract_batched", lambda x, w: torch.einsum("bhik,khjb->hbij", x, w), normal(3, 2, 4, 6), normal(6, 2, 5, 3))
    case("contract_two", lambda x, w: torch.einsum("iab,bja->ij", x, w), normal(4, 2, 3), normal(3, 5, 2))
    case("reduce_sum", lambda x: x.sum((0, 2)), normal(4, 3, 2))
    case("reduce_sum_integer", torch.sum, integers(-9, 9, 6))
    case("reduce_max", lambda x: x.amax(1), normal(*matrix))
    case("reduce_min", lambda x: x.amin(0), normal(*matrix))
    product = normal(4, 3, 2)
    case("reduce_prod", lambda x: x.prod(2).prod(0), product)
    product = product.clone()
    product[1, 1, 0] = 0  # the adjoint of a product with a zero in it
    case("reduce_prod", lambda x: x.prod(2).prod(0), product)
    case("argmax", lambda x: x.argmax(1), normal(*matrix))
    ties = torch.tensor([[1.0, 3, 3, 2, 3, 0], [0, 0, 0, 0, 0, 0], [1, math.nan, 5, math.nan, 2, 0], [5, 4, 3, 2, 1, 5]])
    case("argmax", lambda x: torch.tensor([1, 0, 1, 0]), ties)


def normalization_and_loss():
    case("softmax", lambda x: F.softmax(x, 1), normal(*matrix))
    case("softmax", lambda x: F.softmax(x, 1), 1000 * normal(*matrix))
    case("softmax_first", lambda x: F.softmax(x, 0), normal(*rows))
    case("log_softmax", lambda x: F.log_softmax(x, 1), normal(*matrix))

    def layer_norm(x, scale, bias):
        mean, variance = x.mean((1, 2)), x.var((1, 2), correction=0)
        return F.layer_norm(x, (2, 3), scale, bias, 1e-5), mean, (variance + 1e-5).rsqrt()
    case("layer_norm", layer_norm, normal(4, 2, 3), normal(2, 3), normal(2, 3))
    case("layer_norm_bias", lambda x, bias: F.layer_norm(x, (6,), None, bias, 1e-5), normal(*matrix), normal(6))

    case("cross_entropy", lambda x, t: F.cross_entropy(x, t, reduction="none"), normal(*matrix),
         torch.tensor([0, 5, -100, 3]))
    case("cross_entropy_smoothing",
         lambda x, t: F.cross_entropy(x.reshape(8, 6), t.reshape(8), reduction="none", ignore_index=0,
                                      label_smoothing=0.1).reshape(4, 2), normal(4, 2, 6), integers(0, 6, 4, 2))

    def cross_entropy_grad(x, t, dloss):
        x = x.clone().requires_grad_()
        F.cross_entropy(x, t, reduction="none", label_smoothing=0.1).backward(dloss)
        return x.grad
    case("cross_entropy_grad", cross_entropy_grad, normal(*matrix), torch.tensor([1, -100, 2, 0]), normal(4))
    case("bce_with_logits", lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="none"),
         away_from([0], *rows), positive(*rows))


def schedules():
    warmup, steps, lr, low = 3, 13, 0.5, 0.1

    def rate(kind, step):
        if step < warmup:
            return lr * (step + 1) / warmup
        t = min(1.0, (step - warmup) / (steps - warmup))
        return lr * {"constant": 1.0, "cosine": low + (1 - low) * (1 + math.cos(math.pi * t)) / 2,
                     "linear": 1 - (1 - low) * t, "wsd": 1 - (1 - low) * max(0.0, t - 0.8) / 0.2}[kind]
    for kind in ("constant", "cosine", "linear", "wsd"):
        for step in (0, 1, 2, 3, 7, 11, 12, 13, 20):
            case(f"schedule_{kind}", lambda s, *_: rate(kind, step), step, lr, warmup, steps, low)


def optimizers():
    scale, rate, decay = 0.5, 0.1, 0.2

    def run(name, make, slots, lr_scale=1.0, counted=False):
        """Five steps; `slots` are the optimizer's state names in the order of the op's operands."""
        p = normal(5).requires_grad_()
        optimizer = make([p])
        state = [torch.zeros(5) for _ in slots]
        for t in range(5):
            gradient = normal(5)
            before, old = p.detach().clone(), [s.clone() for s in state]
            p.grad = gradient * scale
            for group in optimizer.param_groups:
                group["lr"] = rate * lr_scale
            optimizer.step()
            state = [optimizer.state[p][slot].clone() for slot in slots]
            count = [t] if counted else []
            case(name, lambda *_: (p.detach().clone(), *state), before, gradient, *old, rate, decay, scale, *count, True)
        # A skipped update changes nothing.
        last = p.detach().clone()
        case(name, lambda *_: (last, *state), last, normal(5), *state, rate, decay, scale, *([5] if counted else []), False)

    sgd, adam = torch.optim.SGD, {"lr": rate, "weight_decay": decay, "betas": (0.9, 0.99), "eps": 1e-8}
    run("sgd", lambda p: sgd(p, rate, weight_decay=decay), [], lr_scale=0.5)
    run("sgd_momentum", lambda p: sgd(p, rate, weight_decay=decay, momentum=0.9), ["momentum_buffer"])
    run("sgd_nesterov", lambda p: sgd(p, rate, weight_decay=decay, momentum=0.9, nesterov=True), ["momentum_buffer"])
    run("adam", lambda p: torch.optim.Adam(p, **adam), ["exp_avg", "exp_avg_sq"], counted=True)
    run("adamw", lambda p: torch.optim.AdamW(p, **adam), ["exp_avg", "exp_avg_sq"], lr_scale=2.0, counted=True)


def indexing():
    ids = torch.tensor([[4, 0, 3, 3], [1, 3, 0, 4]])
    case("embedding", lambda t, i: F.embedding(i, t), normal(5, 6), ids)
    case("embedding", lambda t, i: F.embedding(i.clamp(0, 4), t), normal(5, 6), ids * 3 - 4)  # below 0 and beyond the table
    case("embedding_scalars", lambda t, i: t[i], normal(5), torch.tensor([2, 0, 2, 4]))

    def embedding_grad(d, i, acc=None):
        table = torch.zeros(5, 6, requires_grad=True)
        F.embedding(i, table).backward(d)
        return table.grad if acc is None else acc + table.grad
    case("embedding_grad", embedding_grad, normal(2, 4, 6), ids)
    case("embedding_grad_acc", embedding_grad, normal(2, 4, 6), ids, normal(5, 6))


def attention():
    def attend(q, k, v, mask=None, causal=False):
        """F.scaled_dot_product_attention on [batch, position, head, width], and the log-sum-exp of the scores."""
        groups, (t, s) = q.shape[2] // k.shape[2], (q.shape[1], k.shape[1])
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        allowed = torch.ones(t, s, dtype=torch.bool).tril() if causal else torch.ones(t, s, dtype=torch.bool)
        if mask is None or mask.dtype == torch.bool:
            mask = allowed if mask is None else mask & allowed
            scores = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
        else:
            mask = scores = mask.masked_fill(~allowed, -math.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.75, enable_gqa=groups > 1)
        scores = scores + 0.75 * q @ k.repeat_interleave(groups, 1).transpose(2, 3)
        return y.transpose(1, 2), scores.logsumexp(-1)

    def gradients(q, k, v, y, lse, d, mask=None, causal=False):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        attend(*leaves, mask, causal)[0].backward(d)
        return tuple(x.grad for x in leaves)

    def pair(name, q, k, v, mask=(), causal=False, lse=True, gradient=None):
        y, total = attend(q, k, v, *mask, causal=causal)
        case(name, lambda *_: (y, total) if lse else y, q, k, v, *mask)
        if gradient:
            case(gradient, lambda *a: gradients(*a, causal=causal), q, k, v, y, total, normal(*y.shape), *mask)

    grouped = lambda: (normal(2, 4, 4, 3), normal(2, 5, 2, 3), normal(2, 5, 2, 2))
    pair("attention", *grouped(), gradient="attention_grad")
    pair("attention_causal", *(normal(2, 4, 2, 3) for _ in range(3)), causal=True, gradient="attention_grad_causal")
    pair("attention_causal_more_keys", normal(1, 3, 2, 2), normal(1, 5, 1, 2), normal(1, 5, 1, 2), causal=True, lse=False)
    pair("attention_causal_more_queries", normal(1, 5, 2, 2), normal(1, 3, 1, 2), normal(1, 3, 1, 2), causal=True, lse=False)
    mask = flags(2, 1, 4, 5)
    mask[0, 0, 2] = False  # a query that attends to nothing
    mask[1, 0, 1] = True
    pair("attention_mask", *grouped(), mask=(mask,), gradient="attention_grad_mask")
    bias = normal(1, 2, 1, 4)
    bias[0, 1, 0, 1] = -math.inf
    pair("attention_bias", normal(2, 3, 2, 3), normal(2, 4, 2, 3), normal(2, 4, 2, 2), mask=(bias,), causal=True, lse=False)


def attention_without_keys():
    """Queries whose keys are all masked by a number, which is added to the scores or written over them."""
    def attend(q, k, v, mask):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = 0.75 * q @ k.repeat_interleave(2, 1).transpose(2, 3)
        scores = scores.masked_fill(~mask, -1e9) if mask.dtype == torch.bool else scores + mask
        largest = scores.amax(-1)
        y = scores.softmax(-1) @ v.repeat_interleave(2, 1)
        return y.transpose(1, 2), (scores - largest[..., None]).logsumexp(-1), largest

    def gradients(q, k, v, y, lse, largest, d, mask):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        attend(*leaves, mask)[0].backward(d)
        return tuple(x.grad for x in leaves)

    allowed = flags(2, 1, 4, 5)
    allowed[0, 0, 2] = allowed[1, 0, 0] = False  # queries without a key
    for name, mask in (("fill", allowed), ("low", (~allowed) * torch.finfo(torch.float32).min)):
        leaves = normal(2, 4, 4, 3), normal(2, 5, 2, 3), normal(2, 5, 2, 2)
        results = case(f"attention_{name}", attend, *leaves, mask)
        case(f"attention_grad_{name}", gradients, *leaves, *results, normal(2, 4, 4, 2), mask)


def rotary():
    def halves(x, c, s):
        """Hugging Face's rotate_half on the first elements."""
        turned, rest = x[..., :4], x[..., 4:]
        cos, sin = (torch.cat([a, a], -1)[None, :, None] for a in (c, s))
        rotated = torch.cat([-turned[..., 2:], turned[..., :2]], -1)
        return torch.cat([turned * cos + rotated * sin, rest], -1)

    def pairs(x, c, s):
        """Llama's original form: pairs as complex numbers."""
        turned = torch.view_as_complex(x.reshape(2, 3, 2, 3, 2)) * torch.complex(c, s)[:, :, None]
        return torch.view_as_real(turned).reshape(2, 3, 2, 6)
    angles = normal(3, 2)
    case("rotary", halves, normal(2, 3, 2, 6), angles.cos(), angles.sin())
    angles = normal(2, 3, 3)
    case("rotary_interleaved", pairs, normal(2, 3, 2, 6), angles.cos(), angles.sin())


def rms_norm():
    case("rms_norm", lambda x, scale: (F.rms_norm(x, (2, 3), scale, 1e-5), (x.square().mean((1, 2)) + 1e-5).rsqrt()),
         normal(4, 2, 3), normal(2, 3))
    case("rms_norm_plain", lambda x: F.rms_norm(x, (6,), None, 1e-5), normal(*matrix))


def padding():
    ids = torch.tensor([[4, 1, 3, 1], [1, 3, 0, 4]])
    case("embedding_padding", lambda t, i: F.embedding(i, t, padding_idx=1), normal(5, 6), ids)

    def embedding_grad(d, i):
        table = torch.zeros(5, 6, requires_grad=True)
        F.embedding(i, table, padding_idx=1).backward(d)
        return table.grad
    case("embedding_grad_padding", embedding_grad, normal(2, 4, 6), ids)


def exact_sums():
    """In Python's integers and fractions, which round nothing; of numbers that f32 holds."""
    def words(x):
        result = [0] * 10
        for value in x.reshape(-1).tolist():
            if math.isfinite(value):
                units = int(abs(Fraction(value)) * 2**149)
                for digit in range(9):
                    result[digit] += (-1 if value < 0 else 1) * (units >> 32 * digit & 2**32 - 1)
            else:
                result[9] += 1
        return torch.tensor(result)

    def value(words):
        *digits, count = words.tolist()
        return math.nan if count else float(Fraction(sum(digit << 32 * i for i, digit in enumerate(digits)), 2**149))

    sizes = 2.0 ** integers(-149, 125, *matrix)
    large = (normal(*matrix) * sizes).float().double()
    unlike = large.clone()
    unlike[2, 3:] = special[3:]
    for x in (large, unlike, normal(*matrix).float().double(), torch.zeros(matrix)):
        total, = case("exact_sum", words, x)
        case("exact_value", value, total)
    case("exact_value", value, -words(large.abs()))


def convolutions():
    """Channels last: PyTorch's functions between permutations. Names are those of the instances."""
    def first(x):
        return x.movedim(-1, 1)

    def last(x):
        return x.movedim(1, -1)

    def convolve(x, w, strides, low, high, dilations, groups):
        pads = [p for pair in zip(reversed(low), reversed(high)) for p in pair]
        function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(strides)]
        return last(function(F.pad(first(x), pads), first(w), stride=strides, dilation=dilations, groups=groups))

    def adjoint(index, function, arguments, gradient):
        arguments = [a.clone().requires_grad_(i == index) for i, a in enumerate(arguments)]
        function(*arguments).backward(gradient)
        return arguments[index].grad

    instances = {
        "": ((2, 5, 6, 3), (4, 3, 2, 3), (2, 1), (1, 0), (1, 1), (1, 2), 1),
        "_groups": ((2, 4, 5, 4), (6, 2, 3, 2), (1, 2), (0, 1), (1, 1), (1, 1), 2),
        "_depthwise": ((2, 5, 4, 3), (3, 3, 3, 1), (1, 2), (1, 1), (1, 0), (1, 1), 3),
        "_line": ((3, 9, 2), (4, 3, 2), (3,), (0,), (0,), (2,), 1),
        "_cropped": ((1, 3, 3, 2), (3, 1, 1, 2), (1, 1), (2, 1), (1, 2), (1, 1), 1),
        "_volume": ((1, 3, 4, 3, 2), (3, 2, 2, 2, 2), (2, 1, 2), (1, 0, 1), (0, 1, 1), (1, 2, 1), 1),
    }
    for name, (x, w, *window) in instances.items():
        def function(x, w, window=window):
            return convolve(x, w, *window)
        x, w = normal(*x), normal(*w)
        y, = case(f"convolution{name}", function, x, w)
        d = normal(*y.shape)
        case(f"convolution_input_grad{name}", lambda d, w: adjoint(0, function, (torch.zeros_like(x), w), d), d, w)
        case(f"convolution_kernel_grad{name}", lambda x, d: adjoint(1, function, (x, torch.zeros_like(w)), d), x, d)
        if name in ("", "_depthwise"):
            case(f"convolution_kernel_grad{name}_acc",
                 lambda x, d, a: a + adjoint(1, function, (x, torch.zeros_like(w)), d), x, d, normal(*w.shape))


def pools():
    """Maxima of elements that are apart, so that differences see no other one."""
    def padded(x, low, high, value):
        pads = [p for pair in zip(reversed(low), reversed(high)) for p in pair]
        return F.pad(x, pads, value=value)

    def largest(x):  # of [N, H, W, C], padding included: PyTorch's own is symmetric
        return F.max_pool2d(padded(x, (0, 1, 0, 0), (0, 1, 1, 0), -math.inf).movedim(-1, 1), (3, 2), (2, 2)).movedim(1, -1)

    def overlapping(x):  # of [N, L, C]
        return F.max_pool1d(x.movedim(-1, 1), 3, 1, padding=1, dilation=2).movedim(1, -1)

    def adjoint(function):
        def gradient(x, d):
            x = x.clone().requires_grad_()
            function(x).backward(d)
            return x.grad
        return gradient

    for name, function, shape in (("max", largest, (2, 6, 5, 3)), ("max_overlapping", overlapping, (2, 7, 3))):
        apart = torch.randperm(math.prod(shape), generator=generator).reshape(shape) / 10.0
        y, = case(f"pool_{name}", function, apart)
        instance = f"max_pool_grad{name.removeprefix('max')}"
        case(instance, adjoint(function), apart, normal(*y.shape))

    def of_integers(x):
        x = padded(x.double(), (0, 1, 1, 0), (0, 0, 0, 0), -math.inf)
        return F.max_pool2d(x.movedim(-1, 1), 2, 1).movedim(1, -1).to(torch.int64)
    case("pool_max_integer", of_integers, integers(-128, 0, 2, 4, 4, 1))

    def windows(x):  # every element that a window of pool_sum has, dilated along W
        x = padded(x, (0, 1, 0, 0), (0, 1, 1, 0), 0.0)
        x = x.unfold(1, 3, 2).sum(-1)
        return x[:, :, :-2] + x[:, :, 2:]
    case("pool_sum", windows, normal(2, 5, 6, 3))
    case("pool_sum_channels", lambda x: padded(x, (0, 0, 1), (0, 0, 1), 0.0).unfold(2, 3, 1).sum(-1), normal(2, 3, 5))


def batch_norms():
    """The statistics are those of PyTorch's buffers after one step with momentum 1, the variance without its correction."""
    def norm(x, scale, bias, *running, dim=1, epsilon=0.01):
        rows = x.movedim(dim, -1).reshape(-1, x.shape[dim])
        y = F.batch_norm(x.movedim(dim, 1), None, None, scale, bias, training=True, eps=epsilon).movedim(1, dim)
        return y, rows.mean(0), rows.var(0, unbiased=False)
    case("batch_norm", norm, normal(3, 4, 2), normal(4), normal(4))
    case("batch_norm", norm, normal(3, 4, 2) * 0.1 + 3, normal(4), normal(4))
    case("batch_norm_running", lambda *arguments: norm(*arguments, dim=3, epsilon=1e-5), normal(2, 3, 5, 6), normal(6), normal(6), normal(6), positive(6))


def recurrences():
    """The steps as titan.recurrence defines them; beside nn.LSTM, nn.GRU and nn.RNN, which have one place for the gates. Inputs that are
    projected already are inputs whose weights are the identity."""
    gates = {"lstm": 4, "gru": 3, "gru_reset_before": 3, "tanh": 1, "relu": 1}

    def recur(cell, order, reverse, p, r, initial, bias, extra):
        """`extra` is added to the sums over states: what it gets is their adjoint."""
        width = r.shape[1]
        h, c = initial[0], initial[-1]

        def block(x, gate):
            return x[..., order[gate] * width:(order[gate] + 1) * width]
        steps = [None] * len(p)
        for t in reversed(range(len(p))) if reverse else range(len(p)):
            s = h @ r.T + bias + extra[t]
            a = [block(p[t] + s, g) for g in range(gates[cell])]
            kept = []
            if cell == "lstm":
                kept = [torch.sigmoid(a[0]), torch.sigmoid(a[1]), torch.tanh(a[2]), torch.sigmoid(a[3])]
                c = kept[1] * c + kept[0] * kept[2]
                h = kept[3] * torch.tanh(c)
            elif cell == "gru":
                reset, update = torch.sigmoid(a[0]), torch.sigmoid(a[1])
                c = block(s, 2)
                kept = [reset, update, torch.tanh(block(p[t], 2) + reset * c)]
                h = (1 - update) * kept[2] + update * h
            elif cell == "gru_reset_before":
                reset, update = torch.sigmoid(a[0]), torch.sigmoid(a[1])
                rows = slice(order[2] * width, (order[2] + 1) * width)
                new = (reset * h) @ r[rows].T + bias[rows] + block(extra[t], 2)
                kept = [reset, update, torch.tanh(block(p[t], 2) + new)]
                h = (1 - update) * kept[2] + update * h
            else:
                h = torch.tanh(a[0]) if cell == "tanh" else torch.relu(a[0])
            in_place = [None] * len(kept)
            for gate, value in enumerate(kept):
                in_place[order[gate]] = value
            steps[t] = [h] + ([torch.cat(in_place, -1)] if kept else []) + ([c] if cell in ("lstm", "gru") else [])
        return tuple(torch.stack(each) for each in zip(*steps))

    def check(cell, order, reverse, p, r, initial, bias, result):
        width, count = r.shape[1], gates[cell]
        name = {"lstm": "LSTM", "gru": "GRU"}.get(cell, "RNN")
        layer = getattr(torch.nn, name)(count * width, width, **({"nonlinearity": cell} if name == "RNN" else {}))
        order = [row for gate in order for row in range(gate * width, (gate + 1) * width)]
        with torch.no_grad():
            layer.weight_ih_l0.copy_(torch.eye(count * width))
            layer.weight_hh_l0.copy_(r[order])
            layer.bias_ih_l0.zero_()
            layer.bias_hh_l0.copy_(bias[order])
            first = tuple(state[None] for state in initial)
            y, _ = layer(p[..., order].flip(0) if reverse else p[..., order], first if cell == "lstm" else first[0])
        torch.testing.assert_close(y.flip(0) if reverse else y, result)

    def record(name, cell, steps, batch, width, order=None, reverse=False, with_bias=True, with_cells=False):
        count = gates[cell]
        order = order or list(range(count))
        p, r, bias = normal(steps, batch, count * width), normal(count * width, width) * 0.5, normal(count * width)
        initial = [normal(batch, width) for _ in range(2 if cell == "lstm" else 1)]
        if not with_bias:
            bias = torch.zeros(count * width)
        extra = torch.zeros(p.shape, requires_grad=True)
        leaves = [p.requires_grad_(), extra] + [state.requires_grad_() for state in initial]
        results = recur(cell, order, reverse, p, r, initial, bias, extra)
        if cell != "gru_reset_before":
            check(cell, order, reverse, p, r, initial, bias, results[0])
        if name.startswith("recurrence_grad"):
            dy, dc = normal(steps, batch, width), normal(steps, batch, width)
            loss = (results[0] * dy).sum() + ((results[-1] * dc).sum() if with_cells else 0)
            dp, ds, *dinitial = torch.autograd.grad(loss, leaves)
            adjoints = (dp, *([ds] if cell == "gru" else []), *dinitial)
            arguments = [r, *initial, *results, dy] + ([dc] if with_cells else [])
            case(name, lambda *_: adjoints, *[a.detach() for a in arguments])
        else:
            arguments = [p, r, *initial] + ([bias] if with_bias else [])
            case(name, lambda *_: tuple(each.detach() for each in results), *[a.detach() for a in arguments])

    record("recurrence_lstm", "lstm", 4, 3, 5)
    record("recurrence_lstm_onnx", "lstm", 2, 3, 5, order=[0, 2, 3, 1], reverse=True, with_bias=False)
    record("recurrence_gru", "gru", 4, 3, 5, reverse=True)
    record("recurrence_gru_reset_before", "gru_reset_before", 4, 3, 5, order=[1, 0, 2])
    record("recurrence_tanh", "tanh", 4, 3, 5)
    record("recurrence_relu", "relu", 4, 3, 5, reverse=True, with_bias=False)
    record("recurrence_one_step", "lstm", 1, 2, 17)
    record("recurrence_f64", "gru", 3, 2, 5, order=[1, 0, 2])
    record("recurrence_grad_lstm", "lstm", 4, 3, 5)
    record("recurrence_grad_lstm_cells", "lstm", 3, 2, 5, order=[0, 2, 3, 1], reverse=True, with_cells=True)
    record("recurrence_grad_gru", "gru", 4, 3, 5, reverse=True)
    record("recurrence_grad_gru_reset_before", "gru_reset_before", 4, 3, 5, order=[1, 0, 2])
    record("recurrence_grad_tanh", "tanh", 4, 3, 5, reverse=True)
    record("recurrence_grad_relu", "relu", 4, 3, 5)
    record("recurrence_grad_one_step", "lstm", 1, 2, 17)
    record("recurrence_grad_f64", "gru", 3, 2, 5)


def norms_over_dims():
    """By PyTorch's layer_norm: the normalised dimensions are moved behind the others, and back."""
    def norm(dims, epsilon, biased):
        def function(x, scale=None, bias=None):
            last = range(-len(dims), 0)
            rows = x.movedim(dims, tuple(last))
            shape = rows.shape[-len(dims):]
            y = F.layer_norm(rows, shape, scale, bias if biased else None, epsilon)
            variance = rows.var(tuple(last), correction=0)
            return y.movedim(tuple(last), dims), rows.mean(tuple(last)), (variance + epsilon).rsqrt()
        return function
    case("layer_norm_groups", norm((1, 2, 4), 1e-5, False), normal(2, 3, 2, 2, 3))
    case("layer_norm_groups", norm((1, 2, 4), 1e-5, False), normal(2, 3, 2, 2, 3) * 0.1 + 3)
    case("layer_norm_middle", lambda *arguments: norm((1,), 1e-5, True)(*arguments)[0], normal(2, 3, 4), normal(3), normal(3))

    def ends(x, scale):
        y, mean, rstd = norm((0, 2), 1e-2, False)(x, scale)
        return y, rstd
    case("layer_norm_ends", ends, normal(20, 3, 4), normal(20, 4))


def reverses():
    case("reverse", lambda x: x.flip(0, 2), normal(4, 3, 5))
    case("reverse_middle", lambda x: x.flip(1), normal(2, 5, 3))
    case("reverse_integer", lambda x: x.flip(0), integers(-9, 9, 7))


def angles():
    case("expm1", torch.expm1, normal(*rows))
    case("expm1", torch.expm1, 1e-9 * normal(*rows))
    case("atan", torch.atan, normal(*rows))
    case("atan", torch.atan, 100 * normal(*rows))


def scatters():
    reductions = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}

    def scatter(kind, dim):
        def function(x, index, updates):
            index = index.long().clamp(0, x.shape[dim] - 1)
            index = index.reshape(*index.shape, *[1] * (x.dim() - index.dim())).expand(updates.shape)
            if kind != "none":
                return x.scatter_reduce(dim, index, updates, reductions[kind])
            result = x.clone()  # PyTorch leaves open which of equal indices wins; here it is the last one
            for j in range(updates.shape[dim]):
                piece = index.narrow(dim, j, 1), updates.narrow(dim, j, 1)
                result = result.scatter(dim, *piece)
            return result
        return function

    for kind in ("none", *reductions):
        for low, high in ((0, 5), (-3, 9)):  # also below 0 and beyond the extent
            case(f"scatter_{kind}", scatter(kind, 1), normal(2, 5, 3), integers(low, high, 2, 4, 3), normal(2, 4, 3))
    index = torch.tensor([3, 0, 3, 1])
    case("scatter_rows", scatter("none", 0), normal(5, 3), index, normal(4, 3))
    case("scatter_rows_add", scatter("add", 0), normal(5, 3), index, normal(4, 3))
    zeros = normal(2, 4, 3)
    zeros[0, 1], zeros[0, 2, 0], zeros[1, 3, 1] = 0, 0, 0  # the adjoint of products with one zero and with several
    case("scatter_shared", scatter("mul", 1), normal(2, 5, 3), torch.tensor([[0, 2, 2, 4], [1, 1, 1, 1]]), zeros)
    case("scatter_integer", scatter("add", 0), integers(-9, 9, 6), index, integers(-9, 9, 4))
    case("scatter_boolean", scatter("none", 0), flags(6), index, flags(4))


def orders():
    def top(count, largest):
        """torch.sort, stable: the lower index first."""
        def function(x):
            values, indices = torch.sort(x, dim=-1, descending=largest, stable=True)
            return values[..., :count].contiguous(), indices[..., :count].contiguous()
        return function
    case("top_k", top(4, True), normal(2, 3, 7))
    case("top_k_smallest", top(6, False), normal(4, 6))
    case("top_k_integer", top(5, True), torch.tensor([3, -1, 3, 7, 0, 3, 7, -5, 2]))


def gathers():
    def gather(x, index):
        index = index.long().clamp(0, x.shape[min(1, x.dim() - 1)] - 1)
        return torch.gather(x, min(1, x.dim() - 1), index)

    for low, high in ((0, 5), (-3, 9)):  # also below 0 and beyond the extent
        case("gather", gather, normal(2, 5, 3), integers(low, high, 2, 4, 3))
    case("gather_last", gather, normal(3, 5), integers(0, 5, 3, 8))
    case("gather_shared", lambda x, index: gather(x, index[..., None].expand(*index.shape, 3)), normal(2, 5, 3), integers(0, 5, 2, 4))
    case("gather_boolean", gather, flags(6), integers(0, 6, 4))


def remainders():
    case("rem", torch.fmod, 4 * normal(*rows), positive(*rows))
    # Whole quotients of either sign, at a distance from where they jump.
    quotients, share = integers(-9, 10, *rows), away_from([0], *rows).clamp(-0.9, 0.9).abs()
    divisors = positive(*rows)
    case("rem", torch.fmod, (quotients + torch.where(quotients < 0, -share, share)) * divisors, divisors)


def detaches():
    case("detach", torch.detach, normal(*rows))


if __name__ == "__main__":
    for record in (unary, binary, shape, contraction_and_reduction, normalization_and_loss, schedules, optimizers, indexing,
                   attention, rotary, rms_norm, padding, attention_without_keys, exact_sums, convolutions,
                   pools, batch_norms, recurrences, norms_over_dims, reverses, angles, scatters, orders, gathers,
                   remainders, detaches):
        record()
    lines = [f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(run) for run in runs) + "]"
             for name, runs in sorted(cases.items())]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (Path(__file__).parent / "references.json").write_text(text)
    print(f"{len(cases)} cases, {sum(map(len, cases.values()))} runs")
