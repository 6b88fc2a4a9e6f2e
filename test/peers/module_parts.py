"""Random modules, as data. A spec is a dict of sizes and parts; a part is a dict {"kind": ..., options} of module_layers.py,
module_sequences.py or module_families.py. So a model can be printed, made again, and made smaller by leaving parts out.
"""
import numpy as np
import torch
from torch import nn

import module_families
from module_families import FAMILIES, FLAT, IDS, NEEDS
from module_layers import LAYERS
from module_sequences import SEQUENCES

PARTS = LAYERS | SEQUENCES | FAMILIES
SEQUENTIAL = module_families.SEQUENTIAL | set(SEQUENCES)


class Model(nn.Module):
    """The parts of `spec` one after another, each perhaps added to its input; then a linear layer. With `embedded` the model starts from
    tokens, and its head may have their table's weight."""

    def __init__(self, spec):
        super().__init__()
        torch.manual_seed(spec["seed"])
        self.held, self.length, width = 0, spec["length"], spec["width"]
        self.made, order = [], []  # plain lists: what is in them is no child
        embedded = spec.get("embedded")
        if embedded:
            self.embed = nn.Embedding(IDS, width)
        self.blocks, self.named = nn.ModuleList(), nn.ModuleDict()
        for i, part in enumerate(spec["parts"]):
            module = PARTS[part["kind"]][0](part, width, self)
            self.made.append(module)
            if module is None:
                continue
            call = (module, part["residual"], need_of(spec, i))
            if part["kind"] == "again" and not part.get("own_name"):
                order.append(call)
                continue
            if part["place"] == "list":
                self.blocks.append(module)
            elif part["place"] == "dict":
                self.named[f"n{i}"] = module
            else:
                setattr(self, f"part{i}", module)
            order.append(call)
        self.order = order
        self.head = nn.Linear(width, IDS if embedded else spec["outputs"], bias=embedded != "tied")
        if embedded == "tied":
            self.head.weight = self.embed.weight
        if spec["moved"]:  # away from initial values that are equal by construction
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.1)

    def run(self, x, **given):
        if hasattr(self, "embed"):
            x, given = self.embed(x), given | {"ids": x}
        for module, residual, need in self.order:
            y = module(x, *([given[need]] if need else []))
            x = x + y if residual else y
        return self.head(x)


FORWARDS = {
    ("x",): lambda self, x: self.run(x),
    ("x", "ids"): lambda self, x, ids: self.run(x, ids=ids),
    ("x", "links"): lambda self, x, links: self.run(x, links=links),
    ("x", "ids", "links"): lambda self, x, ids, links: self.run(x, ids=ids, links=links),
}
MODELS = {names: type("Model", (Model,), {"forward": forward}) for names, forward in FORWARDS.items()}


def need_of(spec, i):
    """The input beside `x` of part `i`, or None."""
    part = spec["parts"][i]
    return need_of(spec, part["of"]) if part["kind"] in ("again", "copy") else NEEDS.get(part["kind"])


def inputs_of(spec):
    needs = {need_of(spec, i) for i in range(len(spec["parts"]))} - ({"ids"} if spec.get("embedded") else set())
    return ("x", *(name for name in ("ids", "links") if name in needs))


def model_of(spec):
    return MODELS[inputs_of(spec)](spec)


def data_of(spec, samples, dtype):
    """Inputs and targets by name, floats of `dtype`."""
    draw, length = np.random.default_rng(spec["seed"]), spec["length"]
    rows = (length,) if spec["sequence"] else ()
    data = {"x": draw.standard_normal((samples, *rows, spec["width"])).astype(dtype)}
    targets = draw.standard_normal((samples, *rows, spec["outputs"])).astype(dtype)
    ids = draw.integers(0, IDS, (samples, length))
    ids[0, 0] = 0  # the padding row: the first step, which judges what is trained, has it
    links = ((draw.random((samples, length, length)) < 0.5) | np.eye(length, dtype=bool)).astype(dtype)
    if spec.get("embedded"):
        data["x"], targets = ids, np.roll(ids, -1, axis=1)
    more = {"ids": ids, "links": links}
    return data | {name: more[name] for name in inputs_of(spec)[1:]} | {"targets": targets}


def draw_spec(draw, seed):
    """A model of 1 to 5 parts, as data."""
    sequence = draw.random() < 0.6
    spec = {"seed": seed, "width": draw.choice([4, 6]), "length": draw.choice([3, 5]), "sequence": sequence, "outputs": draw.choice([3, 4]),
            "moved": draw.random() < 0.5, "parts": []}
    if sequence and draw.random() < 0.3:
        spec["embedded"] = draw.choice(["tied", "tied", "apart"])
    kinds = [kind for kind in PARTS if kind not in (FLAT if sequence else SEQUENTIAL)]
    for i in range(draw.randint(1, 5)):
        kind = draw.choice(kinds)
        options = PARTS[kind][1]
        if i == 0 and "of" in options:
            kind, options = "linear", PARTS["linear"][1]
        part = {"kind": kind, "residual": draw.random() < 0.4, "place": draw.choice(["list", "dict", "own"])}
        for option, choices in options.items():
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


def smaller(spec):
    """Models that are a little smaller than `spec`, the boldest first."""
    parts = spec["parts"]
    yield from (without(spec, i) for i in reversed(range(len(parts))))
    if spec["moved"]:
        yield {**spec, "moved": False}
    if spec.get("embedded"):
        yield {key: value for key, value in spec.items() if key != "embedded"}
    if spec["sequence"] and not any(part["kind"] in SEQUENTIAL for part in parts) and not spec.get("embedded"):
        yield {**spec, "sequence": False}
    for i, part in enumerate(parts):
        simpler = [{"residual": False}] if part["residual"] else []
        simpler += [{"place": "own"}] if part["place"] != "own" else []
        simpler += [{"at": "module"}] if part.get("at", "module") != "module" else []
        simpler += [{"layers": 1}] if part.get("layers") == 2 else []
        yield from ({**spec, "parts": [{**p, **change} if j == i else p for j, p in enumerate(parts)]} for change in simpler)
