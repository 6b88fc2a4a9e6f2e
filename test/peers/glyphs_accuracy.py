"""What PyTorch reaches with examples/resnet18: the same network, data and recipe, trained and evaluated by PyTorch alone, from the initial weights
that its own layers draw. Beside it stands what the job of examples/resnet18/README.md says.

    test/peers/run-with-peers test/peers/glyphs_accuracy.py --data build/demo/images [--seeds 0 1 2] [--threads 2]

`--data` is what examples/mlp/make_data.py --size 32 has written.
"""
import argparse
import sys
import tomllib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/training"), str(ROOT / "examples/resnet18")]
from export import ResNet18
from torch_training import learning_rate, make_optimizer

RECIPE = ROOT / "examples/resnet18/train.toml"


def load(path, recipe):
    """Images as the recipe reads them, and their classes."""
    with np.load(path) as arrays:
        images, targets = arrays["x"], arrays["targets"]
    data = recipe["data"]
    return (torch.from_numpy(images).float() * data["scale"] - data["mean"][0]) / data["std"][0], torch.from_numpy(targets)


def batches(samples, batch, random):
    """Indices of the samples of each step: epoch after epoch, each in an order of its own."""
    order = random.permutation(samples)
    while True:
        while len(order) < batch:
            order = np.concatenate([order, random.permutation(samples)])
        yield order[:batch]
        order = order[batch:]


def trained(recipe, images, targets, seed):
    torch.manual_seed(seed)
    model = ResNet18().train()
    optimizer = make_optimizer(model, recipe)
    rows = batches(len(images), recipe["batch"]["global"], np.random.default_rng(seed))
    for step in range(recipe["train"]["steps"]):
        chosen = next(rows)
        loss = F.cross_entropy(model(images[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step) * group["scale"]
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"seed {seed}, step {step + 1}: loss {loss.item():.4f}", flush=True)
    return model.eval()


@torch.no_grad()
def evaluated(model, images, targets):
    """Mean loss and accuracy."""
    logits = torch.cat([model(part) for part in images.split(80)])
    return F.cross_entropy(logits, targets).item(), (logits.argmax(1) == targets).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, type=Path, help="folder of train.npz and eval.npz")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe = tomllib.loads(RECIPE.read_text())
    train, held_out = (load(arguments.data / recipe["data"][part], recipe) for part in ("train", "eval"))
    for seed in arguments.seeds:
        loss, accuracy = evaluated(trained(recipe, *train, seed), *held_out)
        print(f"seed {seed}: loss {loss:.4f}, accuracy {accuracy:.4f} of {len(held_out[0])} samples", flush=True)


if __name__ == "__main__":
    main()
