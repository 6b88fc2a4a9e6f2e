"""Writes what the contenders of one row start from: prepare.py FOLDER ROW

FOLDER/weights.safetensors  state_dict() of the fresh model
FOLDER/data.npz             samples `x` and `targets`, BATCHES batches
FOLDER/model.onnx           the export for Titan, in train mode, its weights beside it
"""
import logging
import sys
import warnings
from pathlib import Path

import protocol

protocol.limit_threads()
import torch
from safetensors.torch import save_file

import problem
from models import MODELS


def main(folder, name):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = MODELS[name]().train()
    save_file(model.state_dict(), folder / "weights.safetensors")
    x = problem.write_data(folder, problem.ROWS[name])
    torch.onnx.export(model, (torch.from_numpy(x),), str(folder / "model.onnx"), dynamo=True, optimize=False, external_data=True,
                      input_names=["x"], output_names=["logits"], verbose=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
