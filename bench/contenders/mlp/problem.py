"""The problem of the MLP benchmark, and what prepare.py left in FOLDER for all contenders alike: programs here are started with FOLDER first."""
import sys
from pathlib import Path

import numpy as np

BATCH, FEATURES, HIDDEN, CLASSES = 64, 784, 128, 10
BATCHES = 16  # different batches, used in turn; already in memory and in the contender's own format
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 1e-3, (0.9, 0.999), 1e-8, 0.01
WARM_UP = 200  # steps after the first
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates


def folder():
    return Path(sys.argv[1])


def batches():
    """BATCHES pairs: [BATCH, FEATURES] f32 and [BATCH] int64."""
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCHES, BATCH, FEATURES)).astype(np.float32)
    return list(zip(x, random.integers(0, CLASSES, (BATCHES, BATCH))))


def write_data():
    """FOLDER/data.npz: all batches, one after the other."""
    x, y = map(np.concatenate, zip(*batches()))
    np.savez(folder() / "data.npz", x=x, targets=y)


def torch_model():
    """With the weights that all start from, once they are there."""
    from safetensors.torch import load_file
    from torch import nn

    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
    if (folder() / "weights.safetensors").exists():
        model.load_state_dict(load_file(folder() / "weights.safetensors"))
    return model
