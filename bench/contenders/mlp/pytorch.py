"""PyTorch, eager or compiled: pytorch.py FOLDER [compile]"""
import with_pytorch  # before PyTorch: it limits the threads
import torch

import problem

model = problem.torch_model()


def loss_of(x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


with_pytorch.serve(problem, model, loss_of, problem.batches())
