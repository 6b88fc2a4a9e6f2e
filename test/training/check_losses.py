#!/usr/bin/env python3
"""Trains every reference of this folder with Titan and compares: 20 losses within 1e-4 relative of PyTorch's, the
checkpoint's names, shapes and values those of the state_dict. Needs numpy only; the references were recorded by
make_references.py.

    check_losses.py --tools build/dev/bin [--only relu] [--keep DIRECTORY]
"""
import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path

import titan_job
from compare import compare_losses, compare_state
from verdict import failed

REFERENCES = Path(__file__).parent / "references"


def pairs(reference):
    """Every recipe with the first export, and every other export with the recipes in turn."""
    exports, recipes = reference["exports"], list(reference["recipes"])
    yield from ((exports[0], recipe) for recipe in recipes)
    yield from zip(exports[1:], itertools.cycle(recipes))


def check(tools, folder, reference, export, recipe, scratch, *options):
    job, run = scratch / "job", scratch / "run"
    names = folder / f"{export}.names.toml"
    titan_job.compile_job(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", job, *(["--names", names] if names.exists() else []), *options)
    expected = reference["recipes"][recipe]
    rows = titan_job.train(job, run, folder / "data.npz", len(expected["f32"]))
    wrong = compare_losses(rows, expected["f32"])
    return wrong + compare_state(titan_job.checkpoint(run, len(expected["f32"])), reference, expected,
                                 reference["folded"].get(export, []), reference.get("instead", {}).get(export))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--only", default="", help="models whose name starts so")
    parser.add_argument("--keep", type=Path, help="keep jobs and runs in this folder")
    parser.add_argument("--references", type=Path, default=REFERENCES)
    arguments = parser.parse_args()

    count = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for folder in sorted(arguments.references.glob(arguments.only + "*/")):
            reference = json.loads((folder / "reference.json").read_text())
            for export, recipe in pairs(reference):
                case = f"{folder.name}/{export}/{recipe}"
                scratch = (arguments.keep or Path(temporary)) / case.replace("/", "-")
                scratch.mkdir(parents=True, exist_ok=True)
                wrong += failed(case, check, arguments.tools, folder, reference, export, recipe, scratch)
                count += 1
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
