"""PyTorch, eager or compiled: pytorch.py [compile]"""
import with_pytorch  # before PyTorch: it limits the threads
import torch

import problem

torch.manual_seed(0)
model = problem.torch_model()


def loss_of(x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


with_pytorch.serve(problem, model, loss_of, problem.batches())
