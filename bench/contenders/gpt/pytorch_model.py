"""The row's GPT in PyTorch, of the example; bf16 by autocast. To be imported behind what limits the threads."""
import contextlib
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from gpt import GPT, Sizes


def load(folder, row):
    """With the weights that all start from."""
    weights = load_file(folder / "weights.safetensors")
    model = GPT(Sizes(row["layers"], row["width"], row["heads"], weights["positions.weight"].shape[0], row["vocabulary"]))
    model.load_state_dict(weights, strict=False)  # the head is the token embedding
    return model


def loss_through(model, precision):
    """The function of token numbers [batch, length] and of those that follow them."""
    lower = torch.autocast("cpu", torch.bfloat16) if precision == "bf16" else contextlib.nullcontext()

    def loss_of(ids, targets):
        with lower:
            logits = model(ids)
            return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    return loss_of
