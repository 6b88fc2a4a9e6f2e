"""Exports the GPTs of gpt_zoo.py in every way in which PyTorch writes ONNX, each beside what the module computes.

    test/peers/run-with-peers test/peers/export_gpt.py OUT [--models 'nano*'] [--ways 'dynamo-*'] [--quick]

OUT/MODEL-WAY.onnx, and for each model MODEL.json (names and shapes of named_parameters(), buffers, ties), MODEL.pt (the
weights) and MODEL.io/INPUT_0.pb, ..., output_0.pb: another batch than that of the exports and what the module computes for
it. A model whose package is not installed and a way that PyTorch itself refuses are listed and left out.
"""
import argparse
import contextlib
import copy
import fnmatch
import json
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from onnx import numpy_helper

import gpt_zoo

EXPORTED_BATCH, RECORDED_BATCH = 3, 5


def dynamo(training, dynamic="", optimize=False, opset=23, external=False):
    return dict(dynamo=True, training=training, dynamic=dynamic, optimize=optimize, opset=opset, external=external)


def legacy(training, dynamic="", fold=False, opset=17):
    return dict(dynamo=False, training=training, dynamic=dynamic, fold=fold, opset=opset)


# `dynamic`: "" (every shape is baked in), "batch", or "batch seq" (both are named).
WAYS = {
    "dynamo-train": dynamo(True, "batch"),
    "dynamo-train-external": dynamo(True, "batch seq", external=True),
    "dynamo-train-static": dynamo(True),
    "dynamo-eval": dynamo(False, "batch", opset=20),
    "dynamo-eval-18": dynamo(False, "", opset=18),
    "dynamo-eval-24": dynamo(False, "batch seq", opset=24),
    "dynamo-eval-25": dynamo(False, "batch", opset=25),
    "dynamo-train-optimized": dynamo(True, "batch", optimize=True),
    "dynamo-eval-optimized": dynamo(False, "", optimize=True, opset=None),
    "dynamo-eval-optimized-23": dynamo(False, "batch seq", optimize=True, opset=23),
    "dynamo-eval-optimized-24": dynamo(False, "", optimize=True, opset=24),
    "legacy-train": legacy(True, "batch"),
    "legacy-train-seq": legacy(True, "batch seq", opset=20),
    "legacy-train-static": legacy(True),
    "legacy-train-folded": legacy(True, "", fold=True),
    "legacy-eval": legacy(False, "", fold=True),
    "legacy-eval-batch": legacy(False, "batch", fold=True, opset=18),
    "legacy-eval-seq": legacy(False, "batch seq", fold=True, opset=20),
    "legacy-eval-unfolded": legacy(False, "", fold=False, opset=14),
}
QUICK = ["dynamo-train", "dynamo-eval-optimized", "dynamo-train-optimized", "legacy-train", "legacy-eval"]


def export(module, inputs, path, way):
    """Writes `module`, called with the dict `inputs`, to `path` as `way` says."""
    module.train(way["training"])
    names, arguments = list(inputs), tuple(inputs.values())
    symbols = way["dynamic"].split()
    options = dict(input_names=names, output_names=["output"], opset_version=way["opset"])
    if way["dynamo"]:
        options.update(dynamo=True, optimize=way["optimize"], external_data=way["external"], verbose=False)
        if symbols:
            dims = {"batch": torch.export.Dim("batch", min=2, max=4096), "seq": torch.export.Dim("seq", min=2, max=gpt_zoo.POSITIONS)}
            options["dynamic_shapes"] = tuple({d: dims[s] for d, s in enumerate(symbols)} for _ in names)
    else:
        mode = torch.onnx.TrainingMode.TRAINING if way["training"] else torch.onnx.TrainingMode.EVAL
        options.update(dynamo=False, training=mode, do_constant_folding=way["fold"])
        if symbols:
            options["dynamic_axes"] = {name: dict(enumerate(symbols)) for name in names}
    torch.onnx.export(module, arguments, str(path), **options)


def record(module, make_inputs, out, name):
    """The module's tables and one evaluation."""
    aliases = {}
    for alias, tensor in [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]:
        aliases.setdefault(id(tensor), []).append(alias)
    description = {
        "parameters": {n: list(p.shape) for n, p in module.named_parameters()},
        "buffers": {n: list(b.shape) for n, b in module.named_buffers()},
        "tied": [names for names in aliases.values() if len(names) > 1],
    }
    (out / f"{name}.json").write_text(json.dumps(description, indent=1))
    torch.save(module.state_dict(), out / f"{name}.pt")
    module.eval()
    inputs = make_inputs(RECORDED_BATCH, gpt_zoo.POSITIONS)
    with torch.no_grad():
        output = module(*inputs.values())
    folder = out / f"{name}.io"
    folder.mkdir(exist_ok=True)
    for label, tensor in [*inputs.items(), ("output", output)]:
        (folder / f"{label}_0.pb").write_bytes(numpy_helper.from_array(tensor.numpy(), label).SerializeToString())


def make_model(name):
    """The module and its inputs, with weights that are no neighbours of ones and zeros."""
    make, inputs = gpt_zoo.MODELS[name]
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return module, inputs


@contextlib.contextmanager
def quiet():
    """TorchScript prints graphs to the file descriptors."""
    kept = [os.dup(fd) for fd in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        sys.stdout.flush()
        for fd in (1, 2):
            os.dup2(null, fd)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        for fd, saved in zip((1, 2), kept):
            os.dup2(saved, fd)
            os.close(saved)
        os.close(null)


def write_all(out, models="*", ways="*", quick=False):
    """The number of exports written, and a line for each that was not."""
    torch.set_num_threads(1)
    logging.disable(logging.ERROR)
    out.mkdir(parents=True, exist_ok=True)
    written, refused = 0, []
    for name in fnmatch.filter(gpt_zoo.MODELS, models):
        try:
            module, make_inputs = make_model(name)
        except ModuleNotFoundError as missing:
            refused.append(f"{name}: {missing}")
            continue
        record(module, make_inputs, out, name)
        for way in fnmatch.filter(QUICK if quick else WAYS, ways):
            if name in gpt_zoo.TAKEN_APART and (WAYS[way].get("optimize") or WAYS[way].get("fold")):
                continue
            if name in gpt_zoo.NOT_BY_TORCHSCRIPT and way.startswith("legacy"):
                continue
            torch.manual_seed(1)
            path = out / f"{name}-{way}.onnx"
            try:
                with quiet():
                    export(copy.deepcopy(module), make_inputs(EXPORTED_BATCH, gpt_zoo.POSITIONS), path, WAYS[way])
                written += 1
            except Exception as error:  # whatever PyTorch cannot export is not ours to import
                path.unlink(missing_ok=True)
                refused.append(f"{name}-{way}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
    return written, refused


def selecting_parser(description):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--models", default="*", help="glob over models")
    parser.add_argument("--ways", default="*", help="glob over ways")
    parser.add_argument("--quick", action="store_true", help="five ways of nineteen")
    return parser


def checking_parser(description):
    """Of a program that checks titan-compile on `exports`."""
    parser = selecting_parser(description)
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--exports", type=Path, help="a folder that export_gpt.py has filled")
    return parser


@contextlib.contextmanager
def exports(arguments):
    """(model, way, path) of each chosen export, made first where there is no folder of them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.exports or Path(temporary)
        if not arguments.exports:
            write_all(folder, arguments.models, arguments.ways, arguments.quick)
        chosen = [(model, way, folder / f"{model}-{way}.onnx") for model in fnmatch.filter(gpt_zoo.MODELS, arguments.models)
                  for way in fnmatch.filter(WAYS, arguments.ways)]
        yield [(model, way, path) for model, way, path in chosen if path.exists()]


def main():
    parser = selecting_parser(__doc__)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    written, refused = write_all(arguments.out, arguments.models, arguments.ways, arguments.quick)
    print(f"{written} exports in {arguments.out}")
    for line in refused:
        print(f"left out: {line}")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
