"""Titan: a job compiled from an ONNX export; each measurement is the wall clock of whole training runs.

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

protocol.limit_threads()
warnings.simplefilter("ignore")
import numpy as np
import torch
from torch import nn

import problem

LEAD = 200
RECIPE = f"""\
[model]
init = "fresh"
[optimizer]
kind = "adamw"
lr = {problem.LEARNING_RATE}
betas = {list(problem.BETAS)}
eps = {problem.EPSILON}
weight_decay = {problem.WEIGHT_DECAY}
no_decay = []
[batch]
micro = {problem.BATCH}
global = {problem.BATCH}
[data]
train = "data.npz"
shuffle = false
"""

tools, folder = Path(sys.argv[1]).resolve(), Path(tempfile.mkdtemp())
model = nn.Sequential(nn.Linear(problem.FEATURES, problem.HIDDEN), nn.ReLU(), nn.Linear(problem.HIDDEN, problem.CLASSES))
torch.onnx.export(model, (torch.zeros(problem.BATCH, problem.FEATURES),), str(folder / "mlp.onnx"), dynamo=False,
                  opset_version=17, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                  input_names=["x"], output_names=["logits"])
x, y = problem.batches()
np.savez(folder / "data.npz", x=x.reshape(-1, problem.FEATURES), targets=y.reshape(-1))
(folder / "train.toml").write_text(RECIPE)
runs = 0


def run_job(steps):
    """Wall seconds of a fresh training run, and the median of the step times that it logged itself."""
    global runs
    runs += 1
    out = folder / f"run-{runs}"
    command = [folder / "mlp", "train", "--out", out, "--data", folder / "data.npz", "--steps", str(steps),
               "--threads", str(protocol.THREADS)]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall = time.perf_counter() - started
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return wall, float(np.median([row["seconds"] for row in rows if "loss" in row]))


started = time.perf_counter()
subprocess.run([tools / "titan-compile", folder / "mlp.onnx", "--recipe", folder / "train.toml", "-o", folder / "mlp"],
               check=True)
run_job(1)
first = time.perf_counter() - started
# "titan-compile 0.1.0 (LLVM 22.1.8)"
version = subprocess.run([tools / "titan-compile", "--version"], capture_output=True, text=True).stdout.split()
protocol.ready({"version": version[1] if len(version) > 1 else "", "first_step": first})
for count in protocol.requests():
    lead = min(run_job(LEAD)[0] for _ in range(2))
    walls, logged = zip(*(run_job(LEAD + count) for _ in range(2)))
    print(max(min(walls) - lead, 0.0), 0, min(logged), flush=True)
