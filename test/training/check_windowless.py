#!/usr/bin/env python3
"""A device without a window: every model trains on one, in f32 and in bf16, to the bits of the CPU's own run.

The jobs are linked with a device that is the CPU's, whose arena the host cannot see and that does nothing before it is
waited for (runtime/device/testing/LateDevice.h). What reads memory behind the interface, or forgets to wait, gives
other bits. Compared are the losses and every file of tensors of the last checkpoint, and the counters.

    check_windowless.py --tools build/dev/bin --late build/dev/lib/titan-late [--only relu] [--all]
"""
import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

import titan_job
from check_losses import REFERENCES, pairs
from verdict import failed

PRECISIONS = {"f32": (), "bf16": ("--set", "precision.compute=bf16")}
STEPS = 20
MARK = b"LateDevice"  # in the names of a job's functions


def run(job, out, folder):
    """The losses, the counters and the files of tensors of a run."""
    rows = titan_job.train(job, out, folder / "data.npz", STEPS)
    checkpoint = out / "checkpoints" / f"step-{STEPS:08d}"
    files = {str(path.relative_to(checkpoint)): path.read_bytes() for path in checkpoint.glob("*/*.safetensors")}
    return [row["loss"] for row in rows], json.loads((checkpoint / "manifest.json").read_text())["counters"], files


def check(tools, late, folder, export, recipe, options, scratch):
    wrong, jobs = [], {"window": scratch / "job", "late": scratch / "late-job"}
    model, recipe = folder / f"{export}.onnx", folder / f"{recipe}.toml"
    titan_job.compile_job(tools, model, recipe, jobs["window"], *options)
    with mock.patch.dict(os.environ, TITAN_LIBRARY_DIR=str(late)):
        titan_job.compile_job(tools, model, recipe, jobs["late"], *options)
    for name, job in jobs.items():
        if (MARK in job.read_bytes()) != (name == "late"):
            wrong.append(f"the job of '{name}' is linked with the other device")
    expected, found = (run(job, scratch / f"{name}.run", folder) for name, job in jobs.items())
    if found[0] != expected[0]:
        wrong.append(f"losses {found[0][:3]}..., on the device with a window {expected[0][:3]}...")
    if found[1] != expected[1]:
        wrong.append(f"counters {found[1]}, {expected[1]}")
    if found[2].keys() != expected[2].keys() or len(expected[2]) < 1:
        wrong.append(f"files {sorted(found[2])}, {sorted(expected[2])}")
    wrong += [f"{name} differs" for name in expected[2] if found[2].get(name) != expected[2][name]]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--late", required=True, type=Path, help="folder of the libraries with the device for tests")
    parser.add_argument("--only", default="", help="models whose name starts so")
    parser.add_argument("--all", action="store_true", help="every export and recipe, not the first of each model")
    arguments = parser.parse_args()

    count = wrong = 0
    for folder in sorted(REFERENCES.glob(arguments.only + "*/")):
        cases = list(pairs(json.loads((folder / "reference.json").read_text())))
        for export, recipe in cases if arguments.all else cases[:1]:
            for precision, options in PRECISIONS.items():
                with tempfile.TemporaryDirectory() as temporary:
                    wrong += failed(f"{folder.name}/{export}/{recipe}/{precision}", check, arguments.tools, arguments.late,
                                    folder, export, recipe, options, Path(temporary))
                count += 1
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
