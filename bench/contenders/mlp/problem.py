"""The problem of the MLP benchmark."""
import numpy as np

BATCH, FEATURES, HIDDEN, CLASSES = 64, 784, 128, 10
BATCHES = 16  # different batches, used in turn; already in memory and in the contender's own format
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 1e-3, (0.9, 0.999), 1e-8, 0.01
WARM_UP = 200  # steps after the first
CHECKED = 1  # each contender draws its own weights: its losses are nobody else's


def batches():
    """BATCHES pairs: [BATCH, FEATURES] f32 and [BATCH] int64."""
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCHES, BATCH, FEATURES)).astype(np.float32)
    return list(zip(x, random.integers(0, CLASSES, (BATCHES, BATCH))))


def torch_model():
    from torch import nn

    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))
