"""PyTorch eager that saves model and optimizer by torch.distributed.checkpoint.async_save.

    pytorch_saves.py FOLDER f32|bf16 EVERY

A request for n is a run of n saves, EVERY steps apart, after as many steps without one. The answer: stalls (seconds that the call took), writes (from a call to the
save's end), steps (seconds of steps without saves), prices (seconds that the steps with a save
took more, a save).
"""
import itertools
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import with_pytorch  # before PyTorch: it limits the threads

import protocol
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import problem
import pytorch_model

folder, precision, row = problem.arguments()
EVERY = int(sys.argv[3])
model = pytorch_model.load(folder, row)
loss_of = pytorch_model.loss_through(model, precision)
optimizer = torch.optim.AdamW(model.parameters(), lr=problem.LEARNING_RATE, betas=problem.BETAS, eps=problem.EPSILON,
                              weight_decay=problem.WEIGHT_DECAY, fused=True)
data = itertools.cycle([tuple(map(torch.from_numpy, batch)) for batch in problem.batches(folder, row)])
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)


def step():
    began = time.perf_counter()
    x, y = next(data)
    optimizer.zero_grad(set_to_none=True)
    loss_of(x, y).backward()
    optimizer.step()
    return time.perf_counter() - began


def state():
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}


def measure(saves):
    steps = [step() for _ in range(EVERY * saves)]
    stalls, writes, with_saves = [], [], []
    for _ in range(saves):
        out = Path(tempfile.mkdtemp(dir=folder))
        began = time.perf_counter()
        future = dcp.async_save(state(), checkpoint_id=out)
        stalls.append(time.perf_counter() - began)
        future.add_done_callback(lambda _, began=began: writes.append(time.perf_counter() - began))
        with_saves += [step() for _ in range(EVERY)]
        future.result()
        shutil.rmtree(out)
    price = (sum(with_saves) - sum(steps) + sum(stalls)) / saves
    return {"version": torch.__version__, "stalls": stalls, "writes": writes, "steps": steps, "prices": [price], "seconds": statistics.median(steps)}


for _ in range(problem.CHECKED):
    step()
protocol.answer_requests({"version": torch.__version__}, measure)
