"""PyTorch, eager or compiled.

    pytorch.py FOLDER f32|bf16 [compile]
"""
import with_pytorch  # before PyTorch: it limits the threads

import problem
import pytorch_model

folder, precision, row = problem.arguments()
model = pytorch_model.load(folder, row)
with_pytorch.serve(problem, model, pytorch_model.loss_through(model, precision), problem.batches(folder, row))
