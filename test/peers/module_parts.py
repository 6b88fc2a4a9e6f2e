"""The parts that random_modules.py draws models from. A part is a dict {"kind": ..., options}: it can be printed, and left out when a failing
model is reduced. A module made of one maps [..., width] to [..., width].

What is in the list is what exporters fold, merge, rename or drop: shared and cloned layers, parameters that are tied, unused, zero, constant or
frozen, buffers in arithmetic, and parameters that arithmetic changes before they are used.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn

# Kind -> what can be drawn for its options; "of" is an earlier part, by position.
PARTS = {
    "linear": {"bias": [True, False], "zero": [False, False, True]},
    "mlp": {"hidden": [5, 8], "act": ["relu", "gelu", "tanh", "silu"]},
    "norm": {"form": ["layer", "layer", "layer_without_affine", "rms", "one_plus"]},
    "again": {"of": None},
    "copy": {"of": None},
    "tied": {"of": None, "turned": [False, True]},
    "unused": {"leaf": ["parameter", "linear"]},
    "frozen": {"form": ["linear", "sines"]},
    "scale": {"value": ["zeros", "ones", "constant", "random"], "op": ["add", "mul"], "at": ["module", "root", "list", "dict"]},
    "scalar": {"form": ["mul", "add", "exp", "one_element"], "at": ["module", "root"]},
    "twice": {"op": ["add", "mul"]},
    "buffer": {"form": ["standardize", "mask", "fourier", "add"], "persistent": [True, False]},
    "fold": {"form": ["one_plus", "turned", "autoencoder", "exp", "row", "rows", "expand", "reshape", "sum", "softplus", "masked", "product",
                      "joined", "two_linears"], "at": ["module", "root"]},
    "bilinear": {},
    "prelu": {"of_width": [True, False]},
    "weight_norm": {},
    "joined": {"first": [True, False]},
    "positions": {"form": ["embedding", "rows", "parameter"]},
    "attention": {"form": ["self", "cross", "separate"], "bias": [True, False]},
    "encoder": {"layers": [1, 2], "first": [True, False]},
    "gate": {},
}
SEQUENTIAL = {"positions", "attention", "encoder"}  # need [batch, length, width]
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "silu": F.silu}


def tensor_of(value, *shape):
    return {"zeros": torch.zeros, "ones": torch.ones, "constant": lambda *s: torch.full(s, 0.7), "random": torch.randn}[value](*shape)


class Held:
    """Where a part keeps its parameter: in its module, the model itself, a ParameterList or a ParameterDict."""

    def __init__(self, module, model, at, value):
        parameter = nn.Parameter(value)
        if at == "module":
            module.w = parameter
            self.get = lambda m: m.w
        elif at == "root":
            name = f"p{model.held}"
            model.held += 1
            model.register_parameter(name, parameter)
            self.get = lambda m: getattr(model, name)
        elif at == "list":
            module.ps = nn.ParameterList([parameter])
            self.get = lambda m: m.ps[0]
        else:
            module.ps = nn.ParameterDict({"scale": parameter})
            self.get = lambda m: m.ps["scale"]


class Function(nn.Module):
    """A module whose forward is `function(module, x)`."""

    def __init__(self, function=None, **children):
        super().__init__()
        self.function = function
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, x):
        return self.function(self, x)


def linear(part, width, model):
    module = nn.Linear(width, width, bias=part["bias"])
    if part["zero"]:
        nn.init.zeros_(module.weight)
    return module


def mlp(part, width, model):
    act = ACTIVATIONS[part["act"]]
    return Function(lambda m, x: m.down(act(m.up(x))), up=nn.Linear(width, part["hidden"]), down=nn.Linear(part["hidden"], width))


def norm(part, width, model):
    form = part["form"]
    if form.startswith("layer"):
        return nn.LayerNorm(width, elementwise_affine=form == "layer")
    plus = 1.0 if form == "one_plus" else 0.0
    module = Function(lambda m, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * ((plus + m.weight) if plus else m.weight))
    module.weight = nn.Parameter(torch.zeros(width) if plus else torch.ones(width))
    return module


def tied(part, width, model):
    of = next((m for m in model.made[part["of"]].modules() if isinstance(m, nn.Linear) and m.in_features == m.out_features == width), None)
    if of is None:
        return None
    if part["turned"]:
        # Not a child: the weight belongs to the other module alone.
        return Function(lambda m, x: F.linear(x, of.weight.t()))
    module = nn.Linear(width, width, bias=False)
    module.weight = of.weight
    return module


def frozen(part, width, model):
    if part["form"] == "linear":
        module = nn.Linear(width, width)
    else:
        angles = torch.arange(1.0, 4.0)[:, None] / 10.0 ** torch.arange(0.0, width // 2)
        module = Function(lambda m, x: x + m.table[1])
        module.table = nn.Parameter(torch.cat([torch.sin(angles), torch.cos(angles)], -1))
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


def scale(part, width, model):
    module = Function()
    held = Held(module, model, part["at"], tensor_of(part["value"], width))
    module.function = (lambda m, x: x + held.get(m)) if part["op"] == "add" else (lambda m, x: x * held.get(m))
    return module


def scalar(part, width, model):
    module = Function()
    held = Held(module, model, part["at"], torch.tensor(0.3) if part["form"] != "one_element" else torch.tensor([0.3]))
    module.function = {"mul": lambda m, x: x * held.get(m), "one_element": lambda m, x: x * held.get(m), "add": lambda m, x: x + held.get(m),
                       "exp": lambda m, x: x * held.get(m).exp()}[part["form"]]
    return module


def twice(part, width, model):
    """One parameter under two names of one module, both used."""
    module = Function(lambda m, x: (x + m.first) + m.second if part["op"] == "add" else x * m.first * m.second)
    module.first = nn.Parameter(torch.randn(width) * 0.3 + 1)
    module.second = module.first
    return module


def unused(part, width, model):
    module = Function(lambda m, x: torch.tanh(x))
    if part["leaf"] == "linear":
        module.idle = nn.Linear(width, 3)
    else:
        module.idle = nn.Parameter(torch.randn(3))
    return module


def buffer(part, width, model):
    form = part["form"]
    module = Function({"standardize": lambda m, x: (x - m.mu) / m.sd, "mask": lambda m, x: x * m.mu,
                       "fourier": lambda m, x: torch.sin(x @ m.mu), "add": lambda m, x: x + m.mu}[form])
    mu = {"mask": (torch.arange(width) % 3 > 0).float(), "fourier": torch.randn(width, width)}.get(form, torch.randn(width))
    module.register_buffer("mu", mu, persistent=part["persistent"])
    if form == "standardize":
        module.register_buffer("sd", torch.rand(width) + 0.5, persistent=part["persistent"])
    return module


def fold(part, width, model):
    form, module = part["form"], Function()
    shape = {"one_plus": (width,), "exp": (width,), "softplus": (width,), "row": (3, width), "rows": (5, width), "expand": (1, width),
             "reshape": (width, 1), "sum": (3, width), "joined": (width // 2,)}.get(form, (width, width))
    held = Held(module, model, part["at"], torch.randn(*shape) * 0.4)
    w = held.get
    if form == "masked":
        module.register_buffer("mask", torch.tril(torch.ones(width, width)))
    if form in ("joined", "product"):
        module.v = nn.Parameter(torch.randn(width - width // 2) if form == "joined" else torch.randn(width, width) * 0.4)
    if form == "two_linears":
        module.v = nn.Linear(width, width)
    module.function = {
        "one_plus": lambda m, x: x * (1 + w(m)),
        "turned": lambda m, x: x @ w(m).t(),
        "autoencoder": lambda m, x: torch.tanh(x @ w(m).t()) @ w(m),
        "exp": lambda m, x: x * w(m).exp(),
        "softplus": lambda m, x: x * F.softplus(w(m)),
        "row": lambda m, x: x + w(m)[1],
        "rows": lambda m, x: x + w(m)[1:3].sum(0),
        "expand": lambda m, x: x * w(m).expand(x.shape[-2] if x.dim() > 2 else 1, -1),
        "reshape": lambda m, x: x + w(m).view(-1),
        "sum": lambda m, x: x + w(m).sum(0),
        "masked": lambda m, x: x @ (w(m) * m.mask),
        "product": lambda m, x: x @ (w(m) @ m.v),
        "joined": lambda m, x: x * torch.cat([w(m), m.v]),
        "two_linears": lambda m, x: m.v(x) + F.linear(x, m.v.weight * 0.5, None) + x @ w(m),
    }[form]
    return module


def bilinear(part, width, model):
    return Function(lambda m, x: m.b(x, x), b=nn.Bilinear(width, width, width))


def joined(part, width, model):
    return Function(lambda m, x: m.out(torch.cat([m.a(x), x] if part["first"] else [x, m.a(x)], -1)),
                    a=nn.Linear(width, 4), out=nn.Linear(width + 4, width))


def positions(part, width, model):
    length = model.length
    if part["form"] == "embedding":
        module = Function(lambda m, x: x + m.table(m.ids), table=nn.Embedding(length + 2, width))
        module.register_buffer("ids", torch.arange(length), persistent=False)
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
    return Function(lambda m, x: m.attend(m.q(x), x, m.v(x), need_weights=False)[0], attend=attend, q=nn.Linear(width, width),
                    v=nn.Linear(width, width))


def encoder(part, width, model):
    layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=part["first"])
    return nn.TransformerEncoder(layer, part["layers"], enable_nested_tensor=False)


BUILDERS = {
    "linear": linear, "mlp": mlp, "norm": norm, "tied": tied, "frozen": frozen, "scale": scale, "scalar": scalar, "twice": twice,
    "unused": unused, "buffer": buffer, "fold": fold, "bilinear": bilinear, "joined": joined, "positions": positions, "attention": attention,
    "encoder": encoder,
    "again": lambda part, width, model: model.made[part["of"]],
    "copy": lambda part, width, model: copy.deepcopy(model.made[part["of"]]),
    "prelu": lambda part, width, model: Function(lambda m, x: m.act(x.reshape(-1, width)).reshape(x.shape),
                                                 act=nn.PReLU(width if part["of_width"] else 1)),
    "weight_norm": lambda part, width, model: nn.utils.parametrizations.weight_norm(nn.Linear(width, width)),
    "gate": lambda part, width, model: Function(lambda m, x: torch.sigmoid(m.a(x)) * m.b(x), a=nn.Linear(width, width), b=nn.Linear(width, width)),
}


class Model(nn.Module):
    """The parts of `spec` one after another, each perhaps added to its input; then a linear layer."""

    def __init__(self, spec):
        super().__init__()
        torch.manual_seed(spec["seed"])
        self.held, self.length, width = 0, spec["length"], spec["width"]
        self.made, order = [], []  # plain lists: what is in them is no child
        self.blocks, self.named = nn.ModuleList(), nn.ModuleDict()
        for i, part in enumerate(spec["parts"]):
            module = BUILDERS[part["kind"]](part, width, self)
            self.made.append(module)
            if module is None:
                continue
            if part["kind"] == "again" and not part.get("own_name"):
                order.append((module, part["residual"]))
                continue
            if part["place"] == "list":
                self.blocks.append(module)
            elif part["place"] == "dict":
                self.named[f"n{i}"] = module
            else:
                setattr(self, f"part{i}", module)
            order.append((module, part["residual"]))
        self.order = order
        self.head = nn.Linear(width, spec["outputs"])
        if spec["moved"]:  # away from initial values that are equal by construction
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.1)

    def forward(self, x):
        for module, residual in self.order:
            y = module(x)
            x = x + y if residual else y
        return self.head(x)


def draw_spec(draw, seed):
    """A model of 1 to 6 parts, as data."""
    sequence = draw.random() < 0.5
    spec = {"seed": seed, "width": draw.choice([4, 6]), "length": draw.choice([3, 5]), "sequence": sequence, "outputs": draw.choice([3, 4]),
            "moved": draw.random() < 0.5, "parts": []}
    kinds = [kind for kind in PARTS if sequence or kind not in SEQUENTIAL]
    for i in range(draw.randint(1, 6)):
        kind = draw.choice(kinds)
        if i == 0 and "of" in PARTS[kind]:
            kind = "linear"
        part = {"kind": kind, "residual": draw.random() < 0.4, "place": draw.choice(["list", "dict", "own"])}
        for option, choices in PARTS[kind].items():
            part[option] = draw.randrange(i) if option == "of" else draw.choice(choices)
        if kind == "again":
            part["own_name"] = draw.random() < 0.4
        spec["parts"].append(part)
    return spec


def without(spec, i):
    """The model without part `i`; parts that name it go as well."""
    gone, parts, moved = {i}, [], {}
    for j, part in enumerate(spec["parts"]):
        if j in gone or part.get("of") in gone:
            gone.add(j)
            continue
        moved[j] = len(parts)
        parts.append({**part, "of": moved[part["of"]]} if "of" in part else part)
    return {**spec, "parts": parts}
