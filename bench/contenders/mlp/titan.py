"""Titan; each measurement is the wall clock of whole training runs.

    titan.py TOOLS       the folder of titan-compile

The seconds of N steps are those of a run of LEAD + N steps less those of a run of LEAD steps, best of two each:
everything that a step costs, the loader, the log and the loss read back included, and nothing that start-up costs.
"""
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import protocol
import with_titan  # before PyTorch: it limits the threads
import numpy as np
import torch

import problem

LEAD = 200


def timed_run(job, steps):
    """Wall seconds of a fresh run, and the median of the step times that it logged itself."""
    command, out = job.train_command("--steps", str(steps))
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return wall, float(np.median([row["seconds"] for row in rows if "loss" in row]))


def main(tools, folder):
    warnings.simplefilter("ignore")
    torch.onnx.export(problem.torch_model(), (torch.zeros(problem.BATCH, problem.FEATURES),), str(folder / "mlp.onnx"), dynamo=False,
                      opset_version=17, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["x"], output_names=["logits"])
    x, y = map(np.concatenate, zip(*problem.batches()))
    np.savez(folder / "data.npz", x=x, targets=y)
    (folder / "train.toml").write_text('[model]\ninit = "fresh"\n' + with_titan.recipe(problem, problem.BATCH, "data.npz"))
    started = time.perf_counter()
    job = with_titan.Job(tools, folder / "mlp.onnx", folder / "train.toml", folder / "mlp", folder / "data.npz")
    losses = [row["loss"] for row in job.first_steps(problem.CHECKED)]
    first_step = time.perf_counter() - started
    job.first_steps(LEAD)  # its memory

    def measure(steps):
        lead = min(timed_run(job, LEAD)[0] for _ in range(2))
        walls, logged = zip(*(timed_run(job, LEAD + steps) for _ in range(2)))
        return {"seconds": max(min(walls) - lead, 0.0), "peak_bytes": job.peak, "logged": min(logged)}

    protocol.answer_requests({"version": with_titan.version(tools), "first_step": first_step, "losses": losses}, measure)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1]).resolve(), Path(temporary))
