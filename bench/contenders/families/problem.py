"""The problem of the benchmark of model families: what prepare.py left in the row's folder for all contenders alike."""
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BATCHES = 4  # different batches, used in turn
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1
WARM_UP = 1  # steps after the checked ones
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates


@dataclass(frozen=True)
class Row:
    batch: int
    sample: tuple  # shape of one
    targets: tuple  # shape of those of one sample
    classes: int
    tokens: int = 0  # of which a sample's numbers are; 0: it is an image
    named: str = ""  # the model as titan-compile knows it, where it does, whose input is `images`


ROWS = {
    "resnet18": Row(32, (3, 32, 32), (), 10, named="nn:resnet?depth=18,classes=10,size=32,stem=small"),
    "mobilenet": Row(32, (3, 96, 96), (), 10),
    "unet": Row(8, (3, 64, 64), (64, 64), 4),
    "lstm": Row(32, (128,), (128,), 1000, tokens=1000),
}


def arguments():
    """(folder, row, precision) of a contender that was started as `contender.py FOLDER ROW f32|bf16 ...`."""
    return Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def write_data(folder, row):
    """FOLDER/data.npz: samples `x` and `targets`, BATCHES batches. Returns the first batch of samples."""
    random = np.random.default_rng(0)
    count = BATCHES * row.batch
    x = random.integers(0, row.tokens, (count, *row.sample)) if row.tokens else random.standard_normal((count, *row.sample), np.float32)
    np.savez(folder / "data.npz", x=x, targets=random.integers(0, row.classes, (count, *row.targets)))
    return x[:row.batch]


def batches(folder, batch):
    """BATCHES pairs of samples and targets."""
    arrays = np.load(folder / "data.npz")
    x, y = (arrays[name].reshape(BATCHES, batch, *arrays[name].shape[1:]) for name in ("x", "targets"))
    return list(zip(x, y))
