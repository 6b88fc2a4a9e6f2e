"""Writes what the contenders start from: prepare.py FOLDER

FOLDER/weights.safetensors the initial weights, under PyTorch's names
FOLDER/data.npz            all batches, one after the other
FOLDER/model.onnx          the export for Titan, with the weights
FOLDER/ort/                training artifacts, for ONNX Runtime, or failure.txt: why there are none
"""
import logging
import warnings

import with_onnx_runtime  # before PyTorch: it limits the threads
import torch
from safetensors.torch import save_file

import problem


def main(folder):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    save_file(problem.torch_model().state_dict(), folder / "weights.safetensors")
    model, sample = problem.torch_model(), torch.zeros(problem.BATCH, problem.FEATURES)
    problem.write_data()
    torch.onnx.export(model, (sample,), str(folder / "model.onnx"), dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["x"], output_names=["logits"])
    with_onnx_runtime.prepare(problem, model, sample, ["x", "logits"], folder / "ort")


if __name__ == "__main__":
    main(problem.folder())
