"""Training with PyTorch: eager, or with `compile` on the command line torch.compile of model and loss; AdamW fused, the fastest it has on CPU."""
import itertools
import sys

import protocol

protocol.limit_threads()
import torch

torch.set_num_threads(protocol.THREADS)


def serve(problem, model, loss_of, batches):
    """`loss_of(x, y)` through `model`; `batches`: pairs of NumPy arrays, used in turn."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=problem.LEARNING_RATE, betas=problem.BETAS, eps=problem.EPSILON,
                                  weight_decay=problem.WEIGHT_DECAY, fused=True)
    if "compile" in sys.argv:
        loss_of = torch.compile(loss_of)
    data = itertools.cycle([tuple(map(torch.from_numpy, batch)) for batch in batches])

    def train(steps):
        for x, y in itertools.islice(data, steps):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
        return loss.item()

    protocol.serve(problem, torch.__version__, train)
