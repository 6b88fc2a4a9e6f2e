"""PyTorch on several ranks; FSDP2 shards each block, and the rest at once.

    pytorch_ranks.py FOLDER f32 ddp|fsdp2
"""
import with_pytorch_ranks  # before PyTorch: it starts the ranks and limits their threads

import problem
import pytorch_model

folder, precision, row = problem.arguments()
whole = pytorch_model.load(folder, row)
model = with_pytorch_ranks.divided(whole, whole.blocks)
with_pytorch_ranks.serve(problem, model, pytorch_model.loss_through(model, precision), problem.batches(folder, row))
