"""Records the references of this folder from PyTorch. Run in the peers' environment (scripts/install-peers):

    .venv/bin/python test/training/make_references.py [--only MODEL] [--output DIRECTORY]

Writes references/<model>/: data.npz, <export>.onnx with the initial weights inside, <export>.names.toml where it needs one, <recipe>.toml, and
reference.json: the losses of each recipe in f32 and f64, the state_dict's names and shapes, the aliases of tied
parameters, what an export destroys, and the L2 norm and the projection (compare.py) of each trained tensor. check_losses.py compares a Titan job with them. Also random/, for check_random.py, and gpt-dropout/,
for check_resume.py and check_equalities.py.
"""
import argparse
import copy
import json
import logging
import tomllib
import zlib
from pathlib import Path

import numpy as np
import torch

import gpt_models
from compare import values_of
from export_model import NAMING, WAYS, export
from models import CASES, COMMON, RANDOM, Moment
from torch_training import train

# The f32 losses are PyTorch's own; where they leave f64 by more than this, the recipe is too chaotic to compare.
CHAOS = 2e-5


def aliases(module):
    """Names of one storage: [[first name, other names...]] of each tied set."""
    sets = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        sets.setdefault(id(parameter), []).append(name)
    return [names for names in sets.values() if len(names) > 1]


def measure(case, initial, trained):
    """What is compared of each trained tensor: its values and, where the case asks for it, the size of its update. The first rows of a tensor, where
    an export has only those, count as a tensor."""
    rows = {name: at["rows"] for instead in case.instead.values() for name, at in instead.items() if "rows" in at}
    tensors = {name: (initial[name].to(after.dtype), after) for name, after in trained.items()}
    tensors |= {f"{name}[:{n}]": tuple(tensor[:n] for tensor in tensors[name]) for name, n in rows.items()}
    measured = values_of({name: after.numpy() for name, (_, after) in tensors.items()})
    if case.updates:
        measured["updates"] = {name: float((after - before).norm()) for name, (before, after) in tensors.items()}
    return measured


def record(case, module, recipe, data):
    runs, states, inputs = {}, {}, list(case.inputs)
    for label, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        trained = copy.deepcopy(module).train(case.training)
        runs[label] = train(trained, recipe, data, inputs, dtype)
        states[label] = trained.state_dict()
    worst = max(abs(a - b) / abs(b) for a, b in zip(runs["f32"], runs["f64"]))
    # In f64 no score is lost beside -1e9: another model.
    if worst > CHAOS and not case.left_padded:
        raise SystemExit(f"f32 and f64 losses differ by {worst:.1e} relative: choose a tamer recipe")
    return runs | measure(case, module.state_dict(), states["f32" if case.left_padded else "f64"])


def draw_text(case, random):
    """The arrays of a language model: windows of one text in which each token follows from the one before more often than by chance, so
    that there is something to learn. With an attention mask every second sample is padded, without targets there; or all but
    the first at their beginning, with targets."""
    length = case.inputs["ids"][0]
    text = [0]
    while len(text) <= case.samples * length:
        text.append((3 * text[-1] + 1) % case.vocabulary if random.random() < 0.6 else int(random.integers(case.vocabulary)))
    text = np.array(text, np.int64)
    data = {"ids": text[:-1].reshape(-1, length), "targets": text[1:].reshape(-1, length).copy()}
    if case.left_padded:
        begins = np.where(np.arange(case.samples) % 4, random.integers(1, length - 1, case.samples), 0)
        data["attention_mask"] = (np.arange(length) >= begins[:, None]).astype(np.int64)
    elif "attention_mask" in case.inputs:
        ends = np.where(np.arange(case.samples) % 2, random.integers(2, length, case.samples), length)
        data["attention_mask"] = (np.arange(length) < ends[:, None]).astype(np.int64)
        data["targets"][data["attention_mask"] == 0] = -100
    return data


def draw_data(case, random):
    """The arrays of data.npz."""
    if case.vocabulary:
        return draw_text(case, random)
    if case.tokens:
        data = {key: random.integers(1, case.tokens, (case.samples, *shape)) for key, shape in case.inputs.items()}
        if case.padded:
            for key, (length,) in case.inputs.items():
                ends = np.where(np.arange(case.samples) % 2, random.integers(2, length, case.samples), length)
                data[key][np.arange(length) >= ends[:, None]] = 0
    else:
        data = {key: random.standard_normal((case.samples, *shape)).astype(np.float32) for key, shape in case.inputs.items()}
    if case.targets:
        data["targets"] = case.targets(random, case.samples)
    return data


def write_case(name, case, folder, seed):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    module = case.make()
    data = draw_data(case, random)
    np.savez(folder / "data.npz", **data)

    # Three samples: a size that no model of this folder has as a feature dimension of an input.
    samples = tuple(torch.from_numpy(data[key][:3]) for key in case.inputs)
    for way in case.exports:
        export(copy.deepcopy(module), samples, case.inputs, folder / f"{way}.onnx",
               metadata=case.metadata or (NAMING if case.vocabulary or case.tokens else None), **WAYS[way])

    for way, text in case.names.items():
        (folder / f"{way}.names.toml").write_text(text)

    reference = {
        "torch": torch.__version__,
        "exports": case.exports,
        "state": {key: list(tensor.shape) for key, tensor in module.state_dict().items()},
        "buffers": [key for key, _ in module.named_buffers()],
        "aliases": aliases(module),
        "folded": case.folded,
        "recipes": {},
    }
    if case.instead:
        reference["instead"] = case.instead
    for label, text in case.recipes.items():
        text = text + "\n" + COMMON
        (folder / f"{label}.toml").write_text(text)
        reference["recipes"][label] = record(case, module, tomllib.loads(text), data)
    (folder / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}: {len(case.exports)} exports, {len(case.recipes)} recipes, {size / 1024:.0f} KiB")


def write_random(folder):
    """The exports that check_random.py trains; there is nothing to record, its expectations are formulas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, ways) in RANDOM.items():
        for way in ways:
            export(Moment(make()), (torch.ones(3, 64),), ["x"], folder / f"{name}.{way}.onnx", **WAYS[way])


def write_gpt_dropout(folder):
    """gpt-nano with dropout in attention and blocks, which the checks of equal bits train on gpt-nano's data and recipes."""
    folder.mkdir(parents=True, exist_ok=True)
    for way in ("dynamo-train", "legacy-train"):
        torch.manual_seed(0)
        export(gpt_models.nano(dropout=0.1), (torch.zeros(3, gpt_models.LENGTH, dtype=torch.int64),), ["ids"],
               folder / f"{way}.onnx", metadata=NAMING, **WAYS[way])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="one model's name")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "references")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    for name, case in CASES.items():
        if arguments.only in (None, name):
            write_case(name, case, arguments.output / name, seed=zlib.crc32(name.encode()))
    if arguments.only in (None, "random"):
        write_random(arguments.output.parent / "random")
    if arguments.only in (None, "gpt-dropout"):
        write_gpt_dropout(arguments.output.parent / "gpt-dropout")


if __name__ == "__main__":
    main()
