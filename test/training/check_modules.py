#!/usr/bin/env python3
"""Imports and trains every recorded export of modules/ with Titan: names, shapes, ties, kinds, first updates and five losses are PyTorch's, or the
account of the import says what is otherwise (account.py). Needs numpy only; test/peers/record_modules.py recorded them.

    check_modules.py --tools build/dev/bin [--only autoencoder] [--verbose]
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from account import Export, Source
from judged_run import arrays_to_states, judged_run
from verdict import failed

MODULES = Path(__file__).parent / "modules"


def check(tools, folder, way, about, scratch, verbose):
    with np.load(folder / "states.npz") as arrays:
        states = arrays_to_states(arrays)
    source = Source(states, about["ties"], about["buffers"], set(about["unused"]), about["losses"])
    export = Export(**about["exports"][way])
    verdict = judged_run(tools, folder / f"{way}.onnx", folder / "train.toml", folder / "data.npz", export, source, scratch)
    if verbose and verdict.kind == "explained":
        print(f"{folder.name}/{way} is explained:", *verdict.lines, sep="\n    ")
    return [] if verdict.kind in ("ok", "explained") else [verdict.kind, *verdict.lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--only", default="", help="models whose name starts so")
    parser.add_argument("--modules", type=Path, default=MODULES)
    parser.add_argument("--verbose", action="store_true", help="also what the account explains")
    arguments = parser.parse_args()
    count = wrong = 0
    for folder in sorted(arguments.modules.glob(arguments.only + "*/")):
        about = json.loads((folder / "source.json").read_text())
        for way in about["exports"]:
            with tempfile.TemporaryDirectory() as scratch:
                wrong += failed(f"{folder.name}/{way}", check, arguments.tools, folder, way, about, Path(scratch), arguments.verbose)
            count += 1
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
