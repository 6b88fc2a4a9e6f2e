"""PyTorch, eager or compiled; bf16 by autocast.

    pytorch.py FOLDER ROW f32|bf16 [last] [compile]      last: channels last in memory
"""
import contextlib
import sys

import with_pytorch  # before PyTorch: it limits the threads
import torch
from safetensors.torch import load_file

import problem
from models import MODELS

folder, name, precision = problem.arguments()
row = problem.ROWS[name]
layout = torch.channels_last if "last" in sys.argv else torch.contiguous_format
model = MODELS[name]().train()
model.load_state_dict(load_file(folder / "weights.safetensors"))
model.to(memory_format=layout)
lower = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()


def loss_of(x, y):
    with lower:
        logits = model(x.contiguous(memory_format=layout) if x.dim() == 4 else x)
    return torch.nn.functional.cross_entropy(logits.reshape(-1, row.classes).float(), y.reshape(-1))


with_pytorch.serve(problem, model, loss_of, problem.batches(folder, row.batch))
