#!/usr/bin/env python3
"""Holds the models that Titan knows by name against their sources: the raised graph of each is that of PyTorch's export; from a checkpoint as
the source's library writes it, 20 losses within 1e-4 relative of PyTorch's and within 1e-5 of the export's job; the checkpoint's names, shapes
and values those of the state_dict. Needs numpy only; the references were recorded by make_references.py.

    check_known.py --tools build/dev/bin [--only gpt] [--keep DIRECTORY]
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

REFERENCES = Path(__file__).parent / "references"
sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

import titan_job
from compare import compare_losses, compare_values
from raised_graph import canonical, first_difference
from verdict import failed

EXPORT_TOLERANCE = 1e-5  # relative, each step: between the model by name and its export


def graph(tools, model, recipe):
    text = titan_job.run([tools / "titan-compile", model, "--recipe", recipe, "--set", "model.init=fresh", "--emit=import"])
    return canonical(text)


def same_graph(tools, folder, request):
    known, exported = (graph(tools, model, folder / "recipe.toml") for model in (request, folder / "export.onnx"))
    return [] if known == exported else [f"the model and its export differ at {first_difference(known, exported)}"]


def same_training(tools, folder, reference, scratch):
    weights = folder / "weights.safetensors"
    rows = {}
    for name, model in (("known", reference["request"]), ("export", folder / "export.onnx")):
        job, run = scratch / f"{name}.job", scratch / f"{name}.run"
        titan_job.compile_job(tools, model, folder / "recipe.toml", job, "--set", "model.init=fresh")
        rows[name] = titan_job.train(job, run, folder / "data.npz", len(reference["recipes"]["f32"]), 2, "--init",
                                     weights if weights.exists() else folder / "weights")
    wrong = compare_losses(rows["known"], reference["recipes"]["f32"])
    found, exported = ([row["loss"] for row in rows[name]] for name in ("known", "export"))
    error = np.max(np.abs(np.subtract(found, exported)) / np.abs(exported))
    if not error <= EXPORT_TOLERANCE:
        wrong.append(f"losses are {error:.1e} from those of the export's job, at most {EXPORT_TOLERANCE:.0e}")
    return wrong + same_state(titan_job.checkpoint(scratch / "known.run", len(found)), reference)


def same_state(tensors, reference):
    """Names, shapes and values of a checkpoint's model tensors; of a tied set the first name counts."""
    wanted = {name: shape for name, shape in reference["state"].items()
              if all(name == names[0] or name not in names for names in reference["aliases"])}
    wrong = [f"{name} is missing" for name in wanted if name not in tensors]
    wrong += [f"{name} is no name of the source" for name in tensors if name not in wanted]
    for name, tensor in tensors.items():
        if name in wanted and list(tensor.shape) != wanted[name]:
            wrong.append(f"{name} is {list(tensor.shape)}, the source has {wanted[name]}")
        elif name in wanted:
            wrong += compare_values(name, tensor, name, reference)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--only", default="", help="models whose name starts so")
    parser.add_argument("--keep", type=Path, help="keep jobs and runs in this folder")
    arguments = parser.parse_args()

    count = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for folder in sorted(REFERENCES.glob(arguments.only + "*/")):
            reference = json.loads((folder / "reference.json").read_text())
            scratch = (arguments.keep or Path(temporary)) / folder.name
            scratch.mkdir(parents=True, exist_ok=True)
            wrong += failed(f"{folder.name}: the graph of its export", same_graph, arguments.tools, folder, reference["request"])
            wrong += failed(f"{folder.name}: trained from the source's weights", same_training, arguments.tools, folder, reference, scratch)
            count += 2
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
