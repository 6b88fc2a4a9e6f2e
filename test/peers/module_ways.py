"""The ways in which random modules are exported: those of export_model.py, which each model takes, and any other, drawn. A way is a line of
words, such as `legacy train unfolded 16 length f64`, so that a failure can be made again.
"""
import numpy as np

from export_model import WAYS, export

DTYPES = {"f32": np.float32, "f64": np.float64}


def draw_way(draw, dynamo):
    """One way of either exporter, any of its opsets: f32 or f64, static, with a named batch or a named length, with external data or without."""
    words = ["dynamo" if dynamo else "legacy", draw.choice(["train", "eval"])]
    words.append(draw.choice(["optimized", "plain"] if dynamo else ["folded", "unfolded"]))
    words.append(str(draw.choice([13, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25] if dynamo else [13, 14, 15, 16, 17, 18, 19, 20])))
    words.append(draw.choice(["static", "batch", "batch", "length"]))
    words.append(draw.choice(["f32", "f32", "f64"]))
    return " ".join(words + draw.choice([[], [], ["external"]]))


def dims_of(way, spec, inputs):
    """{input: {dimension: name}} of what the way names."""
    if "length" not in way.split() or not spec["sequence"]:
        return True
    return {name: {0: "batch", 1: "length"} | ({2: "length"} if name == "links" else {}) for name in inputs}


def options_of(way, spec, inputs):
    """What export_model.export takes, and the type of the model's floats."""
    if way in WAYS:
        return WAYS[way], "f32"
    exporter, mode, changed, opset, names, dtype, *external = way.split()
    options = dict(dynamo=exporter == "dynamo", training=mode == "train", opset_version=int(opset), external_data=bool(external),
                   dynamic=False if names == "static" else dims_of(way, spec, inputs))
    if exporter == "dynamo":
        return options | dict(optimize=changed == "optimized"), dtype
    return options | dict(fold=changed == "folded"), dtype


def is_way(way):
    """Whether a person may have written it."""
    return way in WAYS or len(way.split()) in (6, 7) and way.split()[0] in ("dynamo", "legacy")


__all__ = ["DTYPES", "WAYS", "draw_way", "export", "is_way", "options_of"]
