#!/usr/bin/env python3
"""Installs the build tree, moves the installed tree, and builds and runs examples/embed against it: a program that makes a model, compiles it and
starts the job. Needs CMake and the compiler of the build.

    check_embed.py --tools build/dev/bin [--keep DIRECTORY]
"""
import argparse
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "training"))

import titan_job
from verdict import failed

WANTED = {"bytes.weight", "norm.weight", "norm.bias", "block.up.weight", "block.up.bias", "block.down.weight", "block.down.bias", "head.weight",
          "head.bias"}


def cached(build, name):
    return re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]


def install(build, scratch):
    """What finds itself by absolute paths would not work where the tree is moved to."""
    titan_job.run(["cmake", "--install", build, "--prefix", scratch / "first"])
    (scratch / "first").rename(scratch / "prefix")
    return []


def example(build, scratch):
    titan_job.run(["cmake", "-S", ROOT / "examples" / "embed", "-B", scratch / "build", f"-DCMAKE_PREFIX_PATH={scratch / 'prefix'}",
                   f"-DCMAKE_CXX_COMPILER={cached(build, 'CMAKE_CXX_COMPILER')}"])
    titan_job.run(["cmake", "--build", scratch / "build"])
    shutil.copy(ROOT / "README.md", scratch / "text.txt")
    run = scratch / "run"
    titan_job.run(["env", "-C", scratch, scratch / "build" / "embed", "text.txt", "--steps", 100, "--set", "optimizer.lr=3e-3", "--out", run])
    losses = titan_job.losses_of(run)
    wrong = [] if losses[-1] < 0.8 * losses[0] else [f"the loss goes from {losses[0]} to {losses[-1]}"]
    names = set(titan_job.checkpoint(run, 100))
    return wrong + ([] if names == WANTED else [f"the checkpoint has {sorted(names)}"])


def refusal(_, scratch):
    """The program ends as titan-compile does."""
    try:
        titan_job.run(["env", "-C", scratch, scratch / "build" / "embed"])
    except titan_job.Failure as failure:
        return [] if "exit 2" in str(failure) else [str(failure)]
    return ["it runs without a text"]


def installed_tools(_, scratch):
    job = scratch / "mlp"
    tools = scratch / "prefix" / "bin"
    titan_job.run([tools / "titan-compile", "nn:mlp?inputs=4,outputs=3", "-o", job])
    info = json.loads(titan_job.run([job, "info", "--json"]))
    names = [parameter["name"] for parameter in info["parameters"]]
    return [] if names == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"] else [f"the job has {names}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile in a build tree")
    parser.add_argument("--keep", type=Path, help="keep what is installed and built in this folder")
    arguments = parser.parse_args()
    wrong = count = 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = (arguments.keep or Path(temporary)).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        for name, check in (("install", install), ("example", example), ("refusal", refusal), ("installed tools", installed_tools)):
            wrong += failed(name, check, arguments.tools.resolve().parent, scratch)
            count += 1
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
