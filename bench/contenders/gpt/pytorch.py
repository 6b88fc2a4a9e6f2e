"""PyTorch: eager, or with `compile` torch.compile of model and loss; AdamW fused, the fastest it has on CPU; bf16 by autocast.

    pytorch.py FOLDER f32|bf16 [compile]
"""
import contextlib
import itertools
import sys
from pathlib import Path

import protocol

protocol.limit_threads()
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
import torch
from safetensors.torch import load_file
from torch.nn import functional

import problem
from gpt import GPT, Sizes

folder, precision, row = problem.arguments()
torch.set_num_threads(protocol.THREADS)
weights = load_file(folder / "weights.safetensors")
model = GPT(Sizes(row["layers"], row["width"], row["heads"], weights["positions.weight"].shape[0], row["vocabulary"]))
model.load_state_dict(weights, strict=False)  # the head is the token embedding
del weights
optimizer = torch.optim.AdamW(model.parameters(), lr=problem.LEARNING_RATE, betas=problem.BETAS, eps=problem.EPSILON,
                              weight_decay=problem.WEIGHT_DECAY, fused=True)
lower = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()


def loss_of(ids, targets):
    with lower:
        logits = model(ids)
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


if "compile" in sys.argv:
    loss_of = torch.compile(loss_of)
data = itertools.cycle(list(zip(*map(torch.from_numpy, problem.batches(folder, row)))))


def train(steps):
    for ids, targets in itertools.islice(data, steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(ids, targets)
        loss.backward()
        optimizer.step()
    return loss.item()


protocol.serve(train, torch.__version__, problem.WARM_UP, problem.CHECKED)
