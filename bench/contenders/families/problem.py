"""The problem of the benchmark of model families: what prepare.py left in the row's folder for all contenders alike."""
import sys
from pathlib import Path

import numpy as np

BATCHES = 4  # different batches, used in turn
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1
WARM_UP = 1  # steps after the checked ones
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates


def arguments():
    """(folder, row, precision) of a contender that was started as `contender.py FOLDER ROW f32|bf16 ...`."""
    return Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def batches(folder, batch):
    """BATCHES pairs of samples and targets."""
    arrays = np.load(folder / "data.npz")
    x, y = (arrays[name].reshape(BATCHES, batch, *arrays[name].shape[1:]) for name in ("x", "targets"))
    return list(zip(x, y))
