"""Parts of random modules (module_parts.py): what whole families of models are made of. Mixtures of experts, graph layers, tables of
categories, implicit functions and flows.

A builder is as in module_layers.py. A part of SEQUENTIAL needs [batch, length, width]; one of NEEDS also takes an input of the model: `ids`
[batch, length] of int64 below IDS, or `links` [batch, length, length] of zeros and ones.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from module_layers import Function

IDS = 5  # categories, or tokens


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
    if form == "fixed_point":  # a deep equilibrium, three steps from zeros
        module = Function(w=nn.Linear(width, width), u=nn.Linear(width, width, bias=False))
        module.rate = nn.Parameter(torch.tensor([0.5]))

        def settle(m, x):
            z = torch.zeros_like(x)
            for _ in range(3):
                z = (1 - m.rate) * z + m.rate * torch.tanh(m.w(z) + m.u(x))
            return z

        module.function = settle
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
    "experts": (experts, {"form": ["list", "stacked", "copies", "shared"]}),
    "graph": (graph, {"form": ["gcn", "gin", "sage", "gat", "fixed"], "one": [False, True]}),
    "tokens": (tokens, {"padding": [None, None, 0], "types": [False, True]}),
    "tabular": (tabular, {"form": ["tables", "offsets"], "persistent": [True, False]}),
    "implicit": (implicit, {"form": ["sine", "trained", "fourier", "fixed_point", "nerf"], "persistent": [True, False]}),
    "flow": (flow, {"form": ["coupling", "scaled", "actnorm", "invertible", "permuted"]}),
}
SEQUENTIAL = {"graph", "tokens"}
FLAT = {"tabular"}  # [batch, width] alone
NEEDS = {"graph": "links", "tokens": "ids", "tabular": "ids"}
