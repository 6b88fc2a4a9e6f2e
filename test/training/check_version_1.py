#!/usr/bin/env python3
"""A checkpoint of manifest version 1 resumes to the losses that the Titan which wrote it went on to, and to the bits of its copy in
the current version.

version-1/step-00000012 was saved by the last Titan that wrote version 1, with version-1/recipe.toml, references/relu's model and data,
--arch=x86-64-v3 and --gemm=generated; expected.json has the losses that the same Titan had in steps 13 to 20. Neither is ever recorded
again: the checkpoint is what users have on their disks. A newer compiler rounds otherwise, so losses have a tolerance.

    check_version_1.py --tools build/dev/bin
"""
import argparse
import hashlib
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

import titan_job
from verdict import failed

HERE = Path(__file__).parent
OLD, RELU = HERE / "version-1", HERE / "references" / "relu"
FIRST, LAST = 12, 20
TOLERANCE = 1e-6  # of losses, relative


def has_features():
    """x86-64-v3, as far as the kernels need it."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return {"avx2", "bmi2", "f16c", "fma"} <= set(flags.split())


def digests(checkpoint):
    return {path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(checkpoint.glob("*/*.safetensors"))}


def check(tools, scratch):
    expected, wrong = json.loads((OLD / "expected.json").read_text()), []
    job, out = scratch / "job", scratch / "run"
    shutil.copytree(OLD / f"step-{FIRST:08d}", out / "checkpoints" / f"step-{FIRST:08d}")
    titan_job.run([tools / "titan-ckpt", "verify", out])
    # Its weights start a run like it, too.
    titan_job.run([tools / "titan-ckpt", "import", OLD / f"step-{FIRST:08d}", "-o", scratch / "imported", "--like", OLD / f"step-{FIRST:08d}"])
    titan_job.run([tools / "titan-ckpt", "verify", "--threads", 3, scratch / "imported"])
    titan_job.compile_job(tools, RELU / "dynamo-train.onnx", OLD / "recipe.toml", job, "--arch=x86-64-v3")
    losses = [row["loss"] for row in titan_job.train(job, out, RELU / "data.npz", LAST)]
    if len(losses) != LAST - FIRST or not all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(losses, expected["losses"])):
        wrong.append(f"losses are {losses}, were {expected['losses']}")
    copied = scratch / "copied"
    titan_job.run([tools / "titan-ckpt", "copy", OLD / f"step-{FIRST:08d}", "-o", copied])
    titan_job.train(job, copied, RELU / "data.npz", LAST)
    new, again = (run / "checkpoints" / f"step-{LAST:08d}" for run in (out, copied))
    if digests(new) != digests(again):
        wrong.append(f"shards of step {LAST} have digests {digests(new)}, and from a copy {digests(again)}")
    manifest = json.loads((new / "manifest.json").read_text())
    if manifest["version"] < 2 or manifest["program"]["libraries"]["cpu.gemm"]["library"] != "generated":
        wrong.append(f"version {manifest['version']}, libraries {manifest['program']['libraries']}")
    if titan_job.run([tools / "titan-ckpt", "diff", new, new]).count("\n") != 1:
        wrong.append("titan-ckpt diff finds differences between a checkpoint and itself")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    arguments = parser.parse_args()
    if not has_features():
        print("skipped: this CPU is no x86-64-v3")
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        return 1 if failed("version 1", check, arguments.tools, Path(temporary)) else 0


if __name__ == "__main__":
    sys.exit(main())
