"""Parts of random modules (module_parts.py): layers and what models do with their parameters. Shared and cloned layers, parameters that are
tied, unused, zero, constant, frozen or parametrised, buffers in arithmetic, and parameters that arithmetic changes before they are used.

A builder (part, width, model) returns a module that maps [..., width] to [..., width], or None where the model has nothing to build it on.
"""
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

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
    """A module whose forward is `function(module, *inputs)`."""

    def __init__(self, function=None, **children):
        super().__init__()
        self.function = function
        for name, child in children.items():
            setattr(self, name, child)

    def forward(self, *inputs):
        return self.function(self, *inputs)


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

def tied_norm(part, width, model):
    """Two norms of one weight; the bias of the second is its own, or the first's too."""
    module = Function(lambda m, x: m.second(torch.tanh(m.first(x))), first=nn.LayerNorm(width), second=nn.LayerNorm(width))
    module.second.weight = module.first.weight
    if part["both"]:
        module.second.bias = module.first.bias
    return module


def tied_autoencoder(part, width, model):
    """The decoder's weight is the encoder's, transposed: as a parameter, or each time it is used."""
    module = Function(up=nn.Linear(width, 3))
    if part["form"] == "function":
        module.back = nn.Parameter(torch.zeros(width))
        module.function = lambda m, x: F.linear(torch.tanh(m.up(x)), m.up.weight.t(), m.back)
    else:
        module.function = lambda m, x: F.linear(torch.tanh(m.up(x)), m.up.weight.t()) + F.linear(torch.sigmoid(m.up(x)), m.up.weight.t())
    return module


def spare(part, width, model):
    """A parameter whose first name nothing uses, as T5's `shared.weight`."""
    if part["leaf"] == "norm":
        module = Function(lambda m, x: m.used(x), first=nn.LayerNorm(width), used=nn.LayerNorm(width))
        module.used.bias = module.first.bias
    else:
        module = Function(lambda m, x: m.used(x), first=nn.Linear(width, width, bias=False), used=nn.Linear(width, width))
    module.used.weight = module.first.weight
    return module


class Symmetric(nn.Module):
    """A weight of its upper triangle, mirrored."""

    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class LowRank(nn.Module):
    """Added to a frozen weight: LoRA, merged."""

    def __init__(self, width, rank):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(rank, width) * 0.3), nn.Parameter(torch.zeros(width, rank))

    def forward(self, w):
        return w + self.b @ self.a


def parametrized(part, width, model):
    form, layer = part["form"], nn.Linear(width, width)
    if form == "weight_norm":
        return parametrizations.weight_norm(layer)
    if form == "spectral":
        return parametrizations.spectral_norm(layer)
    if form == "old_weight_norm":
        return nn.utils.weight_norm(layer)
    parametrize.register_parametrization(layer, "weight", Symmetric() if form == "symmetric" else LowRank(width, 2))
    return layer


def lora(part, width, model):
    """A frozen layer and two small matrices beside it."""
    module = Function(lambda m, x: m.base(x) + (x @ m.a.t()) @ m.b.t() * 2.0, base=nn.Linear(width, width))
    for parameter in module.base.parameters():
        parameter.requires_grad_(False)
    module.a, module.b = nn.Parameter(torch.randn(2, width) * 0.3), nn.Parameter(torch.zeros(width, 2))
    if part["layers"]:
        module.function = lambda m, x: m.base(x) + m.up(m.down(x)) * 2.0
        del module.a, module.b
        module.down, module.up = nn.Linear(width, 2, bias=False), nn.Linear(2, width, bias=False)
        nn.init.zeros_(module.up.weight)
    return module


def several(part, width, model):
    """Parameters in a list or a dict, used in a loop."""
    made = [nn.Parameter(torch.ones(width)), nn.Parameter(torch.randn(width)), nn.Parameter(torch.ones(width))]
    module = Function()
    if part["form"] == "list":
        module.ps = nn.ParameterList(made)
        module.function = lambda m, x: torch.tanh(x * m.ps[0] + m.ps[1]) * m.ps[2]
    elif part["form"] == "dict":
        module.ps = nn.ParameterDict(dict(zip("abc", made)))
        module.function = lambda m, x: torch.tanh(x * m.ps["a"] + m.ps["b"]) * m.ps["c"]
    else:
        module.ps = nn.Parameter(torch.stack([p.detach() for p in made]))
        module.function = lambda m, x: torch.tanh(x * m.ps[0] + m.ps[1]) * m.ps[2]
    return module


def arithmetic(part, width, model):
    """Two parameters, or numbers of the program, as operands of one op. They start equal, or drawn."""
    shape = (width,) if part["wide"] else ()
    a = torch.randn(shape) * 0.2 + 0.9 if part["drawn"] else torch.full(shape, 0.5)
    b = torch.randn(shape) * 0.2 + 0.9 if part["drawn"] else a.clone()
    module = Function({
        "alpha": lambda m, x: torch.sub(torch.add(x, m.a, alpha=0.5), m.b, alpha=2),
        "from_one": lambda m, x: (1 - m.a) * x + (0.5 - m.b),
        "products": lambda m, x: x * (m.a * m.b),
        "quotient": lambda m, x: torch.tanh(x / m.a) / m.b,
        "power": lambda m, x: (x.abs() + 0.5) ** m.a * m.b,
        "squares": lambda m, x: x * m.a ** 2 + 2 * m.b,
        "lerp": lambda m, x: torch.lerp(x, m.a.expand_as(x), m.b),
        "addcmul": lambda m, x: torch.addcmul(m.a, x, m.b, value=0.5),
        "where": lambda m, x: x + torch.where(x > 0, m.a, m.b),
        "selected": lambda m, x: torch.where(x > 0, x * m.a, m.b),
        "bounds": lambda m, x: torch.maximum(torch.minimum(x, m.a), -m.b),
        "clamp": lambda m, x: torch.clamp(x, max=m.a) + 0.5 * m.b,
        "numbers": lambda m, x: (x + 0.5) * m.a + 0.5 * m.b,
        "residual": lambda m, x: m.a * x + m.b * torch.tanh(x),
        "addmm": lambda m, x: torch.addmm(m.a.expand(width), x.reshape(-1, width), m.w, beta=0.5, alpha=2).reshape(x.shape) * m.b,
    }[part["form"]])
    module.a, module.b = nn.Parameter(a), nn.Parameter(b)
    if part["form"] == "addmm":
        module.w = nn.Parameter(torch.randn(width, width) * 0.4)
    return module


def detached(part, width, model):
    """Gradients that stop. Exporters other than torch.export to opset 18 or later do not say so, and its optimizer leaves a text of it alone."""
    form, layer = part["form"], nn.Linear(width, width)
    module = Function({
        "branch": lambda m, x: x + torch.tanh(m.layer(x)).detach() * m.w,
        "straight": lambda m, x: (lambda y: y + (torch.round(y) - y).detach())(m.layer(x)) * m.w,
        "weight": lambda m, x: m.layer(x) * m.w.detach(),
        "norm": lambda m, x: m.layer(x) / (1 + (x * m.w).abs().mean(-1, keepdim=True).detach()),
    }[form], layer=layer)
    module.w = nn.Parameter(torch.randn(width) * 0.3 + 1)
    return module


def kink(part, width, model):
    """Functions where their slope jumps: a layer of zeros is there with every sample. The index that `max` would take of equal elements, and that
    a norm or a deviation of zeros has no slope, is in no export."""
    module = Function({
        "relu": lambda m, z: F.relu(z),
        "relu6": lambda m, z: F.relu6(z),
        "leaky": lambda m, z: F.leaky_relu(z, 0.1),
        "elu": lambda m, z: F.elu(z, alpha=0.5),
        "clamp": lambda m, z: z.clamp(min=0),
        "clamp_both": lambda m, z: z.clamp(0, 1),
        "hardtanh": lambda m, z: F.hardtanh(z, -1.0, 0.0),
        "abs": lambda m, z: z.abs(),
        "maximum": lambda m, z: torch.maximum(z, z * 2),
        "minimum": lambda m, z: torch.minimum(z, z * 2),
        "amax": lambda m, z: z - z.amax(-1, keepdim=True),
        "prod": lambda m, z: z + z.prod(-1, keepdim=True) + (z + torch.relu(z - 1)).prod(-1, keepdim=True),
        "normalized": lambda m, z: F.normalize(z, dim=-1),
    }[part["form"]])
    run = module.function
    module.function = lambda m, x: x + run(m, m.layer(x))
    module.layer = nn.Linear(width, width)
    nn.init.zeros_(module.layer.weight)
    nn.init.zeros_(module.layer.bias)
    return module


def copied(part, width, model):
    of = model.made[part["of"]]
    computed = of is not None and any(hasattr(module, "weight_g") for module in of.modules())  # which PyTorch does not copy
    return None if computed else copy.deepcopy(of)


# Kind -> (builder, what can be drawn for its options; "of" is an earlier part, by position).
LAYERS = {
    "linear": (linear, {"bias": [True, False], "zero": [False, False, True]}),
    "mlp": (mlp, {"hidden": [5, 8], "act": list(ACTIVATIONS)}),
    "norm": (norm, {"form": ["layer", "layer", "layer_without_affine", "rms", "one_plus"]}),
    "again": (lambda part, width, model: model.made[part["of"]], {"of": None}),
    "copy": (copied, {"of": None}),
    "tied": (tied, {"of": None, "turned": [False, True]}),
    "spare": (spare, {"leaf": ["norm", "linear"]}),
    "tied_norm": (tied_norm, {"both": [False, True]}),
    "tied_autoencoder": (tied_autoencoder, {"form": ["function", "both"]}),
    "unused": (unused, {"leaf": ["parameter", "linear"]}),
    "frozen": (frozen, {"form": ["linear", "sines"]}),
    "scale": (scale, {"value": ["zeros", "ones", "constant", "random"], "op": ["add", "mul"], "at": ["module", "root", "list", "dict"]}),
    "scalar": (scalar, {"form": ["mul", "add", "exp", "one_element"], "at": ["module", "root"]}),
    "several": (several, {"form": ["list", "dict", "rows"]}),
    "twice": (twice, {"op": ["add", "mul"]}),
    "buffer": (buffer, {"form": ["standardize", "mask", "fourier", "add"], "persistent": [True, False]}),
    "fold": (fold, {"form": ["one_plus", "turned", "autoencoder", "exp", "row", "rows", "expand", "reshape", "sum", "softplus", "masked",
                             "product", "joined", "two_linears"], "at": ["module", "root"]}),
    "bilinear": (bilinear, {}),
    "prelu": (lambda part, width, model: Function(lambda m, x: m.act(x.reshape(-1, width)).reshape(x.shape),
                                                  act=nn.PReLU(width if part["of_width"] else 1)), {"of_width": [True, False]}),
    "parametrized": (parametrized, {"form": ["weight_norm", "old_weight_norm", "spectral", "symmetric", "low_rank"]}),
    "lora": (lora, {"layers": [False, True]}),
    "joined": (joined, {"first": [True, False]}),
    "kink": (kink, {"form": ["relu", "relu6", "leaky", "elu", "clamp", "clamp_both", "hardtanh", "abs", "maximum", "minimum", "amax", "prod",
                             "normalized"]}),
    "detached": (detached, {"form": ["branch", "straight", "weight", "norm"]}),
    "arithmetic": (arithmetic, {"form": ["alpha", "from_one", "products", "quotient", "power", "squares", "lerp", "addcmul", "where", "selected",
                                         "bounds", "clamp", "numbers", "residual", "addmm"],
                                "wide": [True, False], "drawn": [False, False, True]}),
    "gate": (lambda part, width, model: Function(lambda m, x: torch.sigmoid(m.a(x)) * m.b(x), a=nn.Linear(width, width),
                                                 b=nn.Linear(width, width)), {}),
}
