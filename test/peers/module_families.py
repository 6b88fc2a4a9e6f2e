"""Parts of random modules (module_parts.py): what whole families of models are made of. Encoders, decoders and both, mixtures of experts, graph
layers, tables of categories, implicit functions and flows.

A builder is as in module_layers.py. A part of SEQUENTIAL needs [batch, length, width]; one of NEEDS also takes inputs of the model: `ids`
[batch, length] of int64 below IDS, and `links` [batch, length, length] of zeros and ones.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from module_layers import Function

IDS = 5  # categories, or tokens


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


def experts(part, width, model):
    """A mixture: layers in a list, or their weights stacked; copies of one layer, or not; with one that all tokens take."""
    form = part["form"]
    module = Function(gate=nn.Linear(width, 3, bias=False))
    weights = lambda m, x: torch.softmax(m.gate(x), -1)
    if form == "stacked":
        module.up, module.down = nn.Parameter(torch.randn(3, width, 4) * 0.4), nn.Parameter(torch.randn(3, 4, width) * 0.4)
        module.function = lambda m, x: torch.einsum("...e,...ew->...w", weights(m, x), torch.einsum(
            "...eh,ehw->...ew", torch.relu(torch.einsum("...w,ewh->...eh", x, m.up)), m.down))
        return module
    made = nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, width))
    if form == "copies":  # equal at the start, as a dense model that is made a mixture
        module.experts = nn.ModuleList([made])
        for _ in range(2):
            module.experts.append(nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, width)))
            module.experts[-1].load_state_dict(made.state_dict())
    else:
        module.experts = nn.ModuleList([made, *(nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, width)) for _ in range(2))])
    if form == "shared":
        module.shared = nn.Linear(width, width)
    mixed = lambda m, x: sum(weights(m, x)[..., i:i + 1] * expert(x) for i, expert in enumerate(m.experts))
    module.function = (lambda m, x: m.shared(x) + mixed(m, x)) if form == "shared" else mixed
    return module


def graph(part, width, model):
    """A layer over neighbours: `links` says who they are, but for `fixed`, whose matrix is a buffer."""
    form, length = part["form"], model.length
    if form == "gcn":
        return Function(lambda m, x, links: m.w((links @ x) / (links.sum(-1, keepdim=True) + 1)), w=nn.Linear(width, width))
    if form == "gin":
        module = Function(lambda m, x, links: m.mlp((1 + m.eps) * x + links @ x), mlp=nn.Sequential(nn.Linear(width, 5), nn.ReLU(), nn.Linear(5, width)))
        module.eps = nn.Parameter(torch.zeros(1) if part["one"] else torch.tensor(0.0))
        return module
    if form == "sage":
        return Function(lambda m, x, links: m.own(x) + m.other(links @ x), own=nn.Linear(width, width), other=nn.Linear(width, width, bias=False))
    if form == "gat":
        module = Function(w=nn.Linear(width, width, bias=False))
        module.left, module.right = nn.Parameter(torch.randn(width, 1) * 0.3), nn.Parameter(torch.randn(width, 1) * 0.3)

        def attend(m, x, links):
            h = m.w(x)
            scores = F.leaky_relu(h @ m.left + (h @ m.right).transpose(1, 2), 0.2)
            return torch.softmax(scores.masked_fill(links == 0, -1e9), -1) @ h

        module.function = attend
        return module
    module = Function(lambda m, x, links: m.w(m.adjacency @ x), w=nn.Linear(width, width))
    module.register_buffer("adjacency", torch.softmax(torch.randn(length, length), -1))
    return module


def tokens(part, width, model):
    module = Function(table=nn.Embedding(IDS, width, padding_idx=part["padding"]))
    if part["types"]:
        module.types = nn.Embedding(2, width)
        module.register_buffer("type_ids", torch.zeros(1, model.length, dtype=torch.int64), persistent=False)
        module.function = lambda m, x, ids: x + m.table(ids) + m.types(m.type_ids[:, :ids.shape[1]])
    else:
        module.function = lambda m, x, ids: x + m.table(ids)
    return module


def tabular(part, width, model):
    """Numbers beside columns of categories: a table for each, or one for all with an offset for each column."""
    if part["form"] == "tables":
        module = Function(tables=nn.ModuleList(nn.Embedding(IDS, 2) for _ in range(3)), out=nn.Linear(width + 6, width))
        module.function = lambda m, x, ids: m.out(torch.cat([x, *(table(ids[:, i]) for i, table in enumerate(m.tables))], -1))
        return module
    module = Function(lambda m, x, ids: x + m.table(ids[:, :3] + m.offsets).sum(1), table=nn.Embedding(3 * IDS, width))
    module.register_buffer("offsets", torch.arange(3) * IDS, persistent=part["persistent"])
    return module


def implicit(part, width, model):
    form = part["form"]
    if form == "sine":
        return Function(lambda m, x: torch.sin(3.0 * m.a(x)), a=nn.Linear(width, width))
    if form == "trained":
        module = Function(lambda m, x: m.a(torch.sin(m.frequency * x + m.phase)), a=nn.Linear(width, width))
        module.frequency, module.phase = nn.Parameter(torch.full((width,), 2.0)), nn.Parameter(torch.zeros(width))
        return module
    if form == "fourier":
        module = Function(lambda m, x: (lambda p: m.out(torch.cat([torch.sin(p), torch.cos(p)], -1)))(2 * math.pi * x @ m.b), out=nn.Linear(8, width))
        module.register_buffer("b", torch.randn(width, 4) * 0.3, persistent=part["persistent"])
        return module
    octaves = lambda x: torch.cat([x, *(f(x * 2.0 ** k) for k in range(2) for f in (torch.sin, torch.cos))], -1)
    return Function(lambda m, x: m.out(torch.cat([torch.relu(m.a(octaves(x))), octaves(x)], -1)), a=nn.Linear(5 * width, 4),
                    out=nn.Linear(4 + 5 * width, width))


def flow(part, width, model):
    form, half = part["form"], width // 2
    if form == "actnorm":
        module = Function(lambda m, x: (x + m.bias) * torch.exp(m.logs))
        module.bias, module.logs = nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width))
        return module
    if form == "invertible":  # Glow's 1x1 convolution: P (L + I) (U + diag)
        module = Function()
        module.register_buffer("p", torch.eye(width)[torch.randperm(width)])
        module.register_buffer("low", torch.tril(torch.ones(width, width), -1))
        module.register_buffer("one", torch.eye(width), persistent=False)
        module.l, module.u, module.d = (nn.Parameter(torch.randn(*shape) * 0.3) for shape in ((width, width), (width, width), (width,)))
        module.function = lambda m, x: x @ (m.p @ (m.l * m.low + m.one) @ (m.u * m.low.t() + m.one * m.d.exp()))
        return module
    if form == "permuted":
        module = Function(lambda m, x: m.a(x[..., m.order]), a=nn.Linear(width, width))
        module.register_buffer("order", torch.randperm(width))
        return module

    def couple(m, x):
        a, b = x.chunk(2, -1)
        scale, shift = m.net(a).chunk(2, -1)
        scale = torch.tanh(scale) * m.scale.exp() if form == "scaled" else torch.tanh(scale)
        return torch.cat([b * torch.exp(scale) + shift, a], -1)

    module = Function(couple, net=nn.Sequential(nn.Linear(half, 5), nn.Tanh(), nn.Linear(5, 2 * half)))
    if form == "scaled":
        module.scale = nn.Parameter(torch.zeros(half))
    else:  # RealNVP starts as the identity
        nn.init.zeros_(module.net[2].weight)
        nn.init.zeros_(module.net[2].bias)
    return module


FAMILIES = {
    "positions": (positions, {"form": ["embedding", "rows", "parameter", "sines"]}),
    "attention": (attention, {"form": ["self", "cross", "separate", "latents"], "bias": [True, False]}),
    "encoder": (encoder, {"layers": [1, 2], "first": [True, False], "shared": [False, False, True], "norm": [False, True]}),
    "decoder": (decoder, {"layers": [1, 2], "memory": ["linear", "encoder"]}),
    "t5": (t5, {"decoder": [False, True]}),
    "causal": (causal, {"fused": [False, True], "bias": [True, False], "mask": ["buffer", "flag"]}),
    "experts": (experts, {"form": ["list", "stacked", "copies", "shared"]}),
    "graph": (graph, {"form": ["gcn", "gin", "sage", "gat", "fixed"], "one": [False, True]}),
    "tokens": (tokens, {"padding": [None, None, 0], "types": [False, True]}),
    "tabular": (tabular, {"form": ["tables", "offsets"], "persistent": [True, False]}),
    "implicit": (implicit, {"form": ["sine", "trained", "fourier", "nerf"], "persistent": [True, False]}),
    "flow": (flow, {"form": ["coupling", "scaled", "actnorm", "invertible", "permuted"]}),
}
SEQUENTIAL = {"positions", "attention", "encoder", "decoder", "t5", "causal", "graph", "tokens"}
FLAT = {"tabular"}  # [batch, width] alone
NEEDS = {"graph": "links", "tokens": "ids", "tabular": "ids"}
