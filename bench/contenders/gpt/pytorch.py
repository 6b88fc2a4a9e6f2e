"""PyTorch, eager or compiled; bf16 by autocast.

    pytorch.py FOLDER f32|bf16 [compile]
"""
import contextlib
import sys
from pathlib import Path

import with_pytorch  # before PyTorch: it limits the threads
import torch
from safetensors.torch import load_file

import problem

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from gpt import GPT, Sizes

folder, precision, row = problem.arguments()
weights = load_file(folder / "weights.safetensors")
model = GPT(Sizes(row["layers"], row["width"], row["heads"], weights["positions.weight"].shape[0], row["vocabulary"]))
model.load_state_dict(weights, strict=False)  # the head is the token embedding
del weights
lower = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()


def loss_of(ids, targets):
    with lower:
        logits = model(ids)
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


with_pytorch.serve(problem, model, loss_of, problem.batches(folder, row))
