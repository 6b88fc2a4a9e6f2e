"""MLPs that nobody has seen before: drawn at random, exported by PyTorch in each of its ways, trained by PyTorch and
by Titan on the same data, compared as test/training does. A failure prints the seed that makes it again.

    test/peers/run-with-peers test/peers/random_models.py --tools build/dev/bin [--count 12] [--seed 7]
"""
import argparse
import copy
import logging
import random
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
import titan_job
from compare import compare_losses, compare_state, values_of
from export_model import WAYS, export
from make_references import aliases
from torch_training import train
from verdict import failed

# Converted to opset 17, an optimized export has no metadata left: names are made up (docs/exports.md), and cannot be compared.
NAMED_WAYS = [way for way in WAYS if way != "dynamo-17"]
ACTIVATIONS = [nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU, nn.ELU, lambda: nn.GELU(approximate="tanh"),
               lambda: nn.LeakyReLU(0.2)]


class Block(nn.Module):
    """Linear, perhaps a norm, an activation; perhaps added to its input or concatenated with it."""

    def __init__(self, draw, width):
        super().__init__()
        self.join = draw.choice(["none", "none", "add", "concat"])
        out = width if self.join == "add" else draw.randint(5, 24)
        layers = [nn.Linear(width, out, bias=draw.random() < 0.8)]
        if draw.random() < 0.4:
            layers.append(nn.LayerNorm(out))
        layers.append(draw.choice(ACTIVATIONS)())
        self.body = nn.Sequential(*layers)
        self.width = out + (width if self.join == "concat" else 0)

    def forward(self, x):
        y = self.body(x)
        if self.join == "add":
            return x + y
        return torch.cat([x, y], dim=-1) if self.join == "concat" else y


class Model(nn.Module):
    def __init__(self, draw, width, outputs):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(draw.randint(1, 4)):
            self.blocks.append(Block(draw, width))
            width = self.blocks[-1].width
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def draw_recipe(draw, loss):
    lines = ["[loss]", f'kind = "{loss}"']
    if loss == "cross_entropy" and draw.random() < 0.5:
        lines.append("label_smoothing = 0.1")
    lines += ["[optimizer]"] + draw.choice([
        ['kind = "adamw"', "lr = 2e-3", "weight_decay = 0.05"],
        ['kind = "adam"', "lr = 2e-3", "betas = [0.8, 0.99]"],
        ['kind = "sgd"', "lr = 0.02"],
        ['kind = "sgd"', "lr = 0.02", "momentum = 0.9", "weight_decay = 0.01"],
    ])
    if draw.random() < 0.4:
        lines.append("clip_norm = 0.7")
    if draw.random() < 0.5:
        lines += ["[schedule]", f'kind = "{draw.choice(["cosine", "linear", "wsd"])}"', "warmup_steps = 4"]
    micro, microbatches = draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 3])
    lines += ["[batch]", f"micro = {micro}", f"global = {micro * microbatches}"]
    lines += ["[data]", 'train = "data.npz"', "shuffle = false", "[train]", "steps = 20"]
    return "\n".join(lines) + "\n"


def check(tools, seed, scratch):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    torch.manual_seed(seed)
    shape = draw.choice([(draw.randint(3, 24),), (draw.randint(2, 6), draw.randint(3, 16))])
    outputs, samples = draw.randint(2, 12), draw.randint(32, 60)
    loss = draw.choice(["cross_entropy", "cross_entropy", "mse", "l1", "bce_with_logits"])
    model = Model(draw, shape[-1], outputs)
    way = draw.choice(NAMED_WAYS)
    data = {"x": numbers.standard_normal((samples, *shape)).astype(np.float32)}
    if loss == "cross_entropy":
        data["targets"] = numbers.integers(0, outputs, (samples, *shape[:-1]))
    else:
        targets = numbers.standard_normal((samples, *shape[:-1], outputs))
        data["targets"] = (targets > 0 if loss == "bce_with_logits" else targets).astype(np.float32)
    text = draw_recipe(draw, loss)

    np.savez(scratch / "data.npz", **data)
    (scratch / "train.toml").write_text(text)
    export(copy.deepcopy(model), (torch.from_numpy(data["x"][:7]),), ["x"], scratch / "model.onnx", **WAYS[way])
    expected = train(model, tomllib.loads(text), data, ["x"])
    reference = {"state": {name: list(t.shape) for name, t in model.state_dict().items()}, "aliases": aliases(model),
                 "buffers": [name for name, _ in model.named_buffers()]}
    trained = values_of({name: t.detach().numpy() for name, t in model.state_dict().items()})

    titan_job.compile_job(tools, scratch / "model.onnx", scratch / "train.toml", scratch / "job")
    rows = titan_job.train(scratch / "job", scratch / "run", scratch / "data.npz", 20)
    wrong = compare_losses(rows, expected) + compare_state(titan_job.checkpoint(scratch / "run", 20), reference, trained)
    return [f"{way}: {line}" for line in wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1, help="the first of COUNT seeds")
    parser.add_argument("--keep", type=Path, help="keep models, data and jobs in this folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)

    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            scratch = (arguments.keep or Path(temporary)) / f"seed-{seed}"
            scratch.mkdir(parents=True)
            wrong += failed(f"--seed {seed}", check, arguments.tools, seed, scratch)
    print(f"{arguments.count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
