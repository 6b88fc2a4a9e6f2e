"""Writes what the contenders of one row start from: prepare.py FOLDER ROW

FOLDER/weights.pt   state_dict() of the fresh model
FOLDER/data.npz     samples `x` and `targets`, BATCHES batches
FOLDER/model.onnx   the export for Titan, in train mode, its weights beside it
"""
import logging
import sys
import warnings
from pathlib import Path

import protocol

protocol.limit_threads()
import numpy as np
import torch

import problem
from models import ROWS


def main(folder, name):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    row = ROWS[name]
    torch.manual_seed(0)
    model = row.model().train()
    torch.save(model.state_dict(), folder / "weights.pt")
    random = np.random.default_rng(0)
    count = problem.BATCHES * row.batch
    x = random.integers(0, row.tokens, (count, *row.sample)) if row.tokens else random.standard_normal((count, *row.sample), np.float32)
    np.savez(folder / "data.npz", x=x, targets=random.integers(0, row.classes, (count, *row.targets)))
    torch.onnx.export(model, (torch.from_numpy(x[:row.batch]),), str(folder / "model.onnx"), dynamo=True, optimize=False, external_data=True,
                      input_names=["x"], output_names=["logits"], verbose=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
