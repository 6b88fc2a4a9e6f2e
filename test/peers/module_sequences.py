"""Parts of random modules (module_parts.py) over positions: tables of positions, attention, encoders, decoders and both, T5's and causal attention.
A builder is as in module_layers.py; what it returns maps [batch, length, width] to the same.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from module_layers import Function


def positions(part, width, model):
    length = model.length
    if part["form"] == "embedding":
        module = Function(lambda m, x: x + m.table(m.ids), table=nn.Embedding(length + 2, width))
        module.register_buffer("ids", torch.arange(length), persistent=False)
        return module
    if part["form"] == "sines":
        angles = torch.arange(float(length))[:, None] / 10.0 ** torch.arange(0.0, width // 2)
        module = Function(lambda m, x: x + m.table)
        module.register_buffer("table", torch.cat([torch.sin(angles), torch.cos(angles)], -1))
        return module
    rows = length + 2 if part["form"] == "rows" else length
    module = Function((lambda m, x: x + m.table[:, :length]) if part["form"] == "rows" else (lambda m, x: x + m.table))
    module.table = nn.Parameter(torch.randn(1, rows, width) * 0.3)
    return module


def attention(part, width, model):
    attend = nn.MultiheadAttention(width, 2, bias=part["bias"], batch_first=True)
    if part["form"] == "self":
        return Function(lambda m, x: m.attend(x, x, x, need_weights=False)[0], attend=attend)
    if part["form"] == "cross":
        return Function(lambda m, x: (lambda y: m.attend(x, y, y, need_weights=False)[0])(m.memory(x)), attend=attend,
                        memory=nn.Linear(width, width))
    if part["form"] == "class_token":  # before the others, as in a ViT
        module = Function(lambda m, x: x + (lambda y: m.attend(y, y, y, need_weights=False)[0])(
            torch.cat([m.token.expand(x.shape[0], -1, -1), x], 1))[:, :1], attend=attend)
        module.token = nn.Parameter(torch.zeros(1, 1, width))
        return module
    if part["form"] == "latents":
        module = Function(lambda m, x: x + m.attend(m.latents.expand(x.shape[0], -1, -1), x, x, need_weights=False)[0].mean(1, keepdim=True),
                          attend=attend)
        module.latents = nn.Parameter(torch.randn(1, 2, width))
        return module
    return Function(lambda m, x: m.attend(m.q(x), x, m.v(x), need_weights=False)[0], attend=attend, q=nn.Linear(width, width),
                    v=nn.Linear(width, width))


def encoder(part, width, model):
    layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=part["first"])
    if part["shared"]:  # ALBERT: one layer, called twice
        return Function(lambda m, x: m.layer(m.layer(x)), layer=layer)
    return nn.TransformerEncoder(layer, part["layers"], enable_nested_tensor=False, norm=nn.LayerNorm(width) if part["norm"] else None)


def decoder(part, width, model):
    """nn.TransformerDecoder over a memory that a linear layer or an encoder makes of the same sequence."""
    layer = nn.TransformerDecoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
    memory = nn.Linear(width, width)
    if part["memory"] == "encoder":
        memory = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
    return Function(lambda m, x: m.stack(x, m.memory(x)), memory=memory, stack=nn.TransformerDecoder(layer, part["layers"]))


class Biased(nn.Module):
    """T5's attention: no scale, no biases, a bias for each head by the distance of two positions."""

    def __init__(self, width, length, table):
        super().__init__()
        self.heads = 2
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        if table:
            self.relative = nn.Embedding(4, self.heads)
            distance = torch.arange(length)[None] - torch.arange(length)[:, None]
            self.register_buffer("buckets", distance.clamp(-1, 2) + 1, persistent=False)

    def bias(self):
        return self.relative(self.buckets).permute(2, 0, 1)[None]

    def forward(self, x, memory, bias):
        split = lambda t: t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)
        scores = split(self.q(x)) @ split(self.k(memory)).transpose(-1, -2)
        mixed = torch.softmax(scores + bias if bias is not None else scores, -1) @ split(self.v(memory))
        return self.o(mixed.transpose(1, 2).reshape(x.shape))


class ScaleNorm(nn.Module):
    """T5's norm."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def t5(part, width, model):
    """An encoder of two layers that share their biases by distance; perhaps a decoder, with cross-attention."""
    first, second = Biased(width, model.length, True), Biased(width, model.length, False)
    module = Function(first=first, second=second, norm1=ScaleNorm(width), norm2=ScaleNorm(width), last=ScaleNorm(width))

    def encode(m, x):
        bias = m.first.bias()
        y = m.norm1(x)
        x = x + m.first(y, y, bias)
        y = m.norm2(x)
        return m.last(x + m.second(y, y, bias))

    if not part["decoder"]:
        module.function = encode
        return module
    module.inner, module.cross = Biased(width, model.length, True), Biased(width, model.length, False)
    module.norm3, module.norm4 = ScaleNorm(width), ScaleNorm(width)

    def both(m, x):
        memory, y = encode(m, x), m.norm3(x)
        z = x + m.inner(y, y, m.inner.bias())
        return z + m.cross(m.norm4(z), memory, None)

    module.function = both
    return module


def causal(part, width, model):
    """Attention of a decoder: projections apart or one, a mask by PyTorch or as a buffer."""
    length = model.length
    module = Function(out=nn.Linear(width, width))
    if part["fused"]:
        module.qkv = nn.Linear(width, 3 * width, bias=part["bias"])
    else:
        module.q, module.k, module.v = (nn.Linear(width, width, bias=part["bias"]) for _ in range(3))
    if part["mask"] == "buffer":
        module.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def attend(m, x):
        q, k, v = m.qkv(x).split(width, -1) if part["fused"] else (m.q(x), m.k(x), m.v(x))
        q, k, v = (t.view(*t.shape[:2], 2, width // 2).transpose(1, 2) for t in (q, k, v))
        if part["mask"] == "buffer":
            scores = (q @ k.transpose(-1, -2) / math.sqrt(width // 2)).masked_fill(m.mask == 0, float("-inf"))
            y = torch.softmax(scores, -1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return m.out(y.transpose(1, 2).reshape(x.shape))

    module.function = attend
    return module


SEQUENCES = {
    "positions": (positions, {"form": ["embedding", "rows", "parameter", "sines"]}),
    "attention": (attention, {"form": ["self", "cross", "separate", "latents", "class_token"], "bias": [True, False]}),
    "encoder": (encoder, {"layers": [1, 2], "first": [True, False], "shared": [False, False, True], "norm": [False, True]}),
    "decoder": (decoder, {"layers": [1, 2], "memory": ["linear", "encoder"]}),
    "t5": (t5, {"decoder": [False, True]}),
    "causal": (causal, {"fused": [False, True], "bias": [True, False], "mask": ["buffer", "flag"]}),
}
