#!/usr/bin/env python3
"""Resume is exact: a run that is killed three times at random moments ends in the bits of one that was left alone.

Twice: by SIGKILL, which goes back to the last checkpoint, and by SIGTERM, which saves one. Compared are every tensor of
the last checkpoint (model and optimizer) and the losses of all steps. The moments come from --seed, printed on failure.

    check_resume.py --tools build/dev/bin [--seed 1]
"""
import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import titan_job

STEPS, EVERY = 6000, 50
REFERENCE = Path(__file__).parent / "references" / "relu"
OPTIONS = ["--set", f"train.steps={STEPS}", "--set", f"checkpoint.every={EVERY}"]


def interrupt(job, out, draw, number):
    """Starts the run of `out` and sends it signal `number` at a random step; returns false if it ended before."""
    metrics = out / "metrics.jsonl"
    before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    target = before + draw.randint(20, STEPS // 6)
    process = subprocess.Popen([job, "train", "--out", out, "--data", REFERENCE / "data.npz", "--threads", "2"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= target:
            process.send_signal(number)
            break
        time.sleep(0.001)
    said = process.communicate()[1].strip()
    if number == signal.SIGTERM and process.returncode != 0:
        raise titan_job.Failure(f"exit {process.returncode} after SIGTERM: {said}")
    return len(titan_job.losses_of(out)) < STEPS


def state(out):
    folder = out / "checkpoints" / f"step-{STEPS:08d}"
    return titan_job.read_safetensors(folder / "model") | titan_job.read_safetensors(folder / "optimizer")


def differences(out, expected_losses, expected_state):
    wrong, losses, tensors = [], titan_job.losses_of(out), state(out)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        job, alone = scratch / "job", scratch / "alone"
        titan_job.compile_job(arguments.tools, REFERENCE / "dynamo-train.onnx", REFERENCE / "cosine-clip.toml", job, *OPTIONS)
        titan_job.train(job, alone, REFERENCE / "data.npz", STEPS)
        for number in (signal.SIGKILL, signal.SIGTERM):
            out = scratch / number.name
            try:
                stopped = sum(interrupt(job, out, draw, number) for _ in range(3))
                titan_job.train(job, out, REFERENCE / "data.npz", STEPS)
                wrong = differences(out, titan_job.losses_of(alone), state(alone))
                if stopped < 3:
                    wrong.append(f"only {stopped} of 3 runs were stopped before their end: raise STEPS")
            except titan_job.Failure as failure:
                wrong = [str(failure)]
            print(f"{'FAIL' if wrong else 'ok  '} {number.name} three times, --seed {arguments.seed}", *wrong,
                  sep="\n    " if wrong else " ")
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
