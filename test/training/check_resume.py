#!/usr/bin/env python3
"""Resume is exact: a run that is killed three times at random moments ends in the bits of one that was left alone.
A multilayer perceptron, and a GPT with dropout in its attention and its blocks.

Runs after a stop use another number of threads; the GPT does it in f32 and in bf16. Twice: by SIGKILL, which goes back to the last checkpoint, and by SIGTERM, which saves one. Compared are every tensor of
the last checkpoint (model and optimizer) and the losses of all steps. The moments come from --seed.

    check_resume.py --tools build/dev/bin [--seed 1] [--only relu]
"""
import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import titan_job
from verdict import failed

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    model: Path
    recipe: Path
    data: Path
    steps: int  # long enough to be stopped three times
    every: int  # steps between checkpoints
    options: tuple = ()  # of titan-compile


CASES = {
    "relu": Case(HERE / "references/relu/dynamo-train.onnx", HERE / "references/relu/cosine-clip.toml",
                 HERE / "references/relu/data.npz", 6000, 50),
    "gpt-dropout": Case(HERE / "gpt-dropout/dynamo-train.onnx", HERE / "references/gpt-nano/accumulate.toml",
                        HERE / "references/gpt-nano/data.npz", 900, 25),
    "gpt-dropout-bf16": Case(HERE / "gpt-dropout/dynamo-train.onnx", HERE / "references/gpt-nano/accumulate.toml",
                             HERE / "references/gpt-nano/data.npz", 600, 7, ("--set", "precision.compute=bf16")),
}


def interrupt(case, job, out, draw, number):
    """Starts the run of `out` and sends it signal `number` at a random step; returns false if it ended before."""
    metrics = out / "metrics.jsonl"
    before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    target = before + draw.randint(20, case.steps // 6)
    process = subprocess.Popen([job, "train", "--out", out, "--data", case.data, "--threads", str(draw.randint(1, 2))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= target:
            process.send_signal(number)
            break
        time.sleep(0.001)
    said = process.communicate()[1].strip()
    if number == signal.SIGTERM and process.returncode != 0:
        raise titan_job.Failure(f"exit {process.returncode} after SIGTERM: {said}")
    return len(titan_job.losses_of(out)) < case.steps


def state(case, out):
    folder = out / "checkpoints" / f"step-{case.steps:08d}"
    return titan_job.read_safetensors(folder / "model") | titan_job.read_safetensors(folder / "optimizer")


def differences(case, out, expected_losses, expected_state):
    wrong, losses, tensors = [], titan_job.losses_of(out), state(case, out)
    if losses != expected_losses:
        step = next((i for i, pair in enumerate(zip(losses, expected_losses)) if pair[0] != pair[1]), len(losses))
        wrong.append(f"losses differ from step {step + 1} on ({len(losses)} steps logged)")
    for name in sorted(set(tensors) | set(expected_state)):
        if name not in tensors or name not in expected_state:
            wrong.append(f"{name} is in one of the two checkpoints only")
        elif tensors[name].tobytes() != expected_state[name].tobytes():
            worst = np.abs(tensors[name].astype(np.float64) - expected_state[name].astype(np.float64)).max()
            wrong.append(f"{name} differs by up to {worst:.1e}")
    return wrong


def check(case, tools, scratch, draw):
    """What differs from a run that was left alone, after each of the signals."""
    job, alone, wrong = scratch / "job", scratch / "alone", []
    titan_job.compile_job(tools, case.model, case.recipe, job, "--set", f"train.steps={case.steps}",
                          "--set", f"checkpoint.every={case.every}", *case.options)
    titan_job.train(job, alone, case.data, case.steps)
    for number in (signal.SIGKILL, signal.SIGTERM):
        out = scratch / number.name
        stopped = sum(interrupt(case, job, out, draw, number) for _ in range(3))
        titan_job.train(job, out, case.data, case.steps)
        found = differences(case, out, titan_job.losses_of(alone), state(case, alone))
        if stopped < 3:
            found.append(f"only {stopped} of 3 runs were stopped before their end: raise the steps")
        wrong += [f"{number.name}: {line}" for line in found]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="models whose name starts so")
    arguments = parser.parse_args()
    print(f"--seed {arguments.seed}")
    wrong, cases = 0, {name: case for name, case in CASES.items() if name.startswith(arguments.only)}
    for name, case in cases.items():
        with tempfile.TemporaryDirectory() as temporary:
            wrong += failed(name, check, case, arguments.tools, Path(temporary), random.Random(arguments.seed))
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
