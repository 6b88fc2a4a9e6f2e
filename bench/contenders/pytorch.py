"""PyTorch: eager, or with `compile` torch.compile of model and loss; AdamW fused, the fastest it has on CPU."""
import itertools
import sys

import common

common.limit_threads()
import torch
from torch import nn

torch.set_num_threads(common.THREADS)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(common.FEATURES, common.HIDDEN), nn.ReLU(), nn.Linear(common.HIDDEN, common.CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=common.LEARNING_RATE, betas=common.BETAS, eps=common.EPSILON,
                              weight_decay=common.WEIGHT_DECAY, fused=True)


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x), y)


if "compile" in sys.argv:
    loss_of = torch.compile(loss_of)
data = itertools.cycle(list(zip(*map(torch.from_numpy, common.batches()))))


def train(steps):
    for x, y in itertools.islice(data, steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
    return loss.item()


common.serve(train, torch.__version__)
