"""The GPT benchmark's problem: the rows of its table, and what prepare.py left in the row's folder for all contenders alike."""
import json
import sys
from pathlib import Path

import numpy as np

BATCHES = 8  # different batches, used in turn
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1
WARM_UP = 1  # steps after the checked ones
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates


def arguments():
    """(folder, precision, description of the row) of a contender that was started as `contender.py FOLDER f32|bf16 ...`."""
    folder = Path(sys.argv[1])
    return folder, sys.argv[2], json.loads((folder / "row.json").read_text())


def write_tokens(folder, vocabulary, batch, length):
    """FOLDER/tokens.bin: uint16 tokens for BATCHES batches, each of consecutive windows, and one to follow."""
    np.random.default_rng(0).integers(0, vocabulary, BATCHES * batch * length + 1, np.uint16).tofile(folder / "tokens.bin")


def batches(folder, row):
    """BATCHES pairs of [batch, length]: numbers of tokens and of the tokens that follow them, int64."""
    text = np.fromfile(folder / "tokens.bin", np.uint16).astype(np.int64)
    shape = (BATCHES, row["batch"], row["length"])
    return list(zip(text[:-1].reshape(shape), text[1:].reshape(shape)))
