"""PyTorch: eager, or with `compile` torch.compile of model and loss; AdamW fused, the fastest it has on CPU."""
import itertools
import sys

import protocol

protocol.limit_threads()
import torch
from torch import nn

import problem

torch.set_num_threads(protocol.THREADS)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(problem.FEATURES, problem.HIDDEN), nn.ReLU(), nn.Linear(problem.HIDDEN, problem.CLASSES))
optimizer = torch.optim.AdamW(model.parameters(), lr=problem.LEARNING_RATE, betas=problem.BETAS, eps=problem.EPSILON,
                              weight_decay=problem.WEIGHT_DECAY, fused=True)


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x), y)


if "compile" in sys.argv:
    loss_of = torch.compile(loss_of)
data = itertools.cycle(list(zip(*map(torch.from_numpy, problem.batches()))))


def train(steps):
    for x, y in itertools.islice(data, steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
    return loss.item()


protocol.serve(train, torch.__version__, problem.WARM_UP)
