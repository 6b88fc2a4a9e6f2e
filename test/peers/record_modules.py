"""Records test/training/modules: the smallest model of each thing that once was wrong about names, shapes, kinds and ties, as the exports of the
ways in which it was, with what PyTorch trains. test/training/check_modules.py trains them without PyTorch.

    test/peers/run-with-peers test/peers/record_modules.py [--only NAME] [--output DIR]

A model is a spec of module_parts.py. Add one by pasting what random_modules.py has reduced.
"""
import argparse
import json
import logging
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from export_model import LISTING, export
from judged_run import states_to_arrays
from module_parts import data_of, inputs_of, model_of
from module_ways import DTYPES, options_of
from random_modules import EXAMPLE, ROWS, STEPS, quiet, read_export, recipe_of, trained_by_pytorch

OUTPUT = Path(__file__).parent.parent / "training/modules"
SEED = 5


def part(kind, **options):
    return {"kind": kind, "residual": False, "place": "own", **options}


def spec(*parts, sequence=False, **options):
    return {"seed": SEED, "width": 4, "length": 3, "sequence": sequence, "outputs": 3, "moved": False, "parts": list(parts), **options}


LINEAR = part("linear", bias=True, zero=False)
NORM = part("norm", form="layer")
BOTH = ["dynamo-optimized", "legacy-eval"]
# Name -> (model, ways).
CASES = {
    "autoencoder-of-one-weight": (spec(part("fold", form="autoencoder", at="module")), [*BOTH, "dynamo-17"]),
    "autoencoder-called-twice": (spec(part("tied_autoencoder", form="both")), BOTH),
    "encoder-of-copies": (spec(part("encoder", layers=2, first=False, shared=False, norm=False), sequence=True), ["legacy-eval", "dynamo-optimized"]),
    "equal-root-parameters": (spec(part("scale", value="constant", op="mul", at="root"), part("mlp", hidden=5, act="tanh"),
                                   part("scale", value="constant", op="mul", at="root")), BOTH),
    "kept-norm-used-last": (spec(NORM, LINEAR, part("norm", form="layer", place="list")), ["dynamo-optimized", "dynamo-17", "legacy-eval"]),
    "cross-attention": (spec(part("attention", form="cross", bias=True), sequence=True), ["legacy-eval"]),
    "attention-apart": (spec(part("attention", form="separate", bias=True), sequence=True), BOTH),
    "latent-queries": (spec(part("attention", form="latents", bias=True), sequence=True), BOTH),
    "one-plus-weight": (spec(part("norm", form="one_plus")), BOTH),
    "one-plus-scalar": (spec(part("graph", form="gin", one=False), sequence=True), [*BOTH, "dynamo-17"]),
    "exponential-of-a-scalar": (spec(part("scalar", form="exp", at="module")), [*BOTH, "dynamo-17"]),
    "row-of-a-root-parameter": (spec(part("fold", form="row", at="root")), BOTH),
    "rows-in-turn": (spec(part("several", form="rows")), [*BOTH, "dynamo-17"]),
    "standardized-inputs": (spec(part("buffer", form="standardize", persistent=True)), ["legacy-train", "legacy-eval", "dynamo-optimized"]),
    "fourier-features": (spec(part("implicit", form="fourier", persistent=True)), ["legacy-train", "legacy-eval"]),
    "bilinear": (spec(part("bilinear")), ["dynamo-optimized", "dynamo eval plain 15 batch f32"]),
    "prelu": (spec(part("prelu", of_width=True)), ["dynamo-optimized", "dynamo-17"]),
    "first-name-unused": (spec(part("spare", leaf="linear"), part("spare", leaf="norm")), ["dynamo-eval", *BOTH]),
    "token-types": (spec(part("tokens", padding=None, types=True), sequence=True), BOTH),
    "padded-tokens": (spec(part("tokens", padding=0, types=False), sequence=True), ["dynamo-optimized", "legacy-eval", "dynamo-17"]),
    "fixed-sines": (spec(part("frozen", form="sines")), BOTH),
    "lora": (spec(part("lora", layers=False)), [*BOTH, "dynamo-17"]),
    "symmetric-weight": (spec(part("parametrized", form="symmetric")), BOTH),
    "weight-norm": (spec(part("parametrized", form="weight_norm")), BOTH),
    "copied-layers-and-tied-norms": (spec(LINEAR, part("copy", of=0, residual=True), part("tied_norm", both=False)), BOTH),
    "experts-of-copies": (spec(part("experts", form="copies")), [*BOTH, "dynamo-17"]),
    "fresh-decoder": (spec(part("decoder", layers=1, memory="linear"), sequence=True), ["dynamo-optimized"]),
    "flow-of-fresh-scales": (spec(part("flow", form="actnorm"), part("flow", form="scaled")), [*BOTH, "dynamo-17"]),
    "masked-weight": (spec(part("fold", form="masked", at="module")), ["legacy-train", *BOTH]),
    "two-bilinears": (spec(part("bilinear"), part("copy", of=0)), ["dynamo-optimized"]),
    "masks-without-metadata": (spec(part("buffer", form="mask", persistent=True)), ["dynamo-17", "legacy-eval"]),
    "fixed-point": (spec(part("implicit", form="fixed_point", persistent=True)),
                    ["dynamo train optimized 20 batch f32", "legacy eval folded 17 batch f32"]),
    "class-token": (spec(part("attention", form="class_token", bias=True), sequence=True), BOTH),
    "tied-gate": (spec(part("gate"), part("tied", of=0, turned=False), moved=True), BOTH),
    "fresh-t5": (spec(part("t5", decoder=True), sequence=True), BOTH),
    "equal-scalars": (spec(part("scalar", form="add", at="module"), part("copy", of=0)), ["dynamo-optimized"]),
    "equal-operands": (spec(part("arithmetic", form="where", wide=False, drawn=False), part("arithmetic", form="addcmul", wide=True, drawn=False)),
                       ["dynamo-optimized"]),
    "scaled-operands": (spec(part("arithmetic", form="alpha", wide=True, drawn=True)),
                        ["dynamo-optimized", "dynamo eval plain 15 batch f32"]),
    "interpolated": (spec(part("arithmetic", form="lerp", wide=True, drawn=True)), ["dynamo eval optimized 15 batch f32"]),
    "trained-bound": (spec(part("arithmetic", form="clamp", wide=False, drawn=True)), ["legacy-train", "legacy-eval"]),
    "at-the-bounds": (spec(part("kink", form="clamp"), part("kink", form="relu6"), part("kink", form="hardtanh")),
                      ["dynamo-train", *BOTH, "dynamo-17"]),
    "norm-beside-ones": (spec(part("several", form="list"), part("norm", form="layer_without_affine")), ["dynamo-optimized"]),
    "copied-tables": (spec(part("tokens", padding=None, types=True), part("copy", of=0), sequence=True), ["dynamo eval optimized 13 batch f64"]),
    "copied-autoencoder": (spec(part("tied_autoencoder", form="both"), part("copy", of=0)), ["legacy-eval"]),
    "within-cast-bounds": (spec(part("kink", form="hardtanh")), ["dynamo-train"]),
    "within-cast-bounds-in-f64": (spec(part("kink", form="relu6"), part("kink", form="hardtanh")), ["dynamo eval plain 23 batch f64"]),
    "between-whole-numbers": (spec(part("kink", form="clamp_both")), ["dynamo-train", "dynamo-optimized", "legacy-eval"]),
    "straight-through": (spec(part("detached", form="straight"), part("detached", form="branch")), ["dynamo-train", "dynamo-optimized"]),
    "coupling-in-f64": (spec(part("flow", form="scaled", residual=True), part("linear", bias=False, zero=False, residual=True), width=6, length=5,
                             outputs=4), ["dynamo eval plain 20 batch f64"]),
}


def record(name, model_spec, ways, folder):
    """FOLDER/WAY.onnx, data.npz, train.toml, states.npz (PyTorch's tensors at the start, after one step and after all) and source.json."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    inputs, exports = inputs_of(model_spec), {}
    kinds = {options_of(way, model_spec, inputs)[1] for way in ways}
    assert len(kinds) == 1, f"{name}: one type of floats for a model"
    dtype = DTYPES[kinds.pop()]
    data, floats = data_of(model_spec, ROWS * STEPS, dtype), torch.from_numpy(np.zeros(1, dtype)).dtype
    for way in ways:
        model = model_of(model_spec)
        model._apply(lambda tensor: tensor.to(floats) if tensor.is_floating_point() else tensor)
        path = folder / f"{way.replace(' ', '-')}.onnx"
        with quiet():
            export(model, tuple(torch.from_numpy(data[key][:EXAMPLE]) for key in inputs), inputs, path, metadata=LISTING,
                   **options_of(way, model_spec, inputs)[0])
        read = read_export(path)
        exports[path.stem] = {"initializers": read.initializers, "listed": read.listed}
    recipe = recipe_of(model_spec, False)
    source = trained_by_pytorch(model_of(model_spec), tomllib.loads(recipe), data, inputs, floats)
    np.savez(folder / "data.npz", **data)
    np.savez_compressed(folder / "states.npz", **states_to_arrays(source.states))
    (folder / "train.toml").write_text(recipe)
    about = {"torch": torch.__version__, "spec": model_spec, "ties": source.ties, "buffers": source.buffers, "unused": sorted(source.unused),
             "losses": source.losses, "exports": exports}
    (folder / "source.json").write_text(json.dumps(about, indent=1) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: {', '.join(exports)}, {size / 1024:.0f} KiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for name in [arguments.only] if arguments.only else CASES:
        record(name, *CASES[name], arguments.output / name)


if __name__ == "__main__":
    main()
