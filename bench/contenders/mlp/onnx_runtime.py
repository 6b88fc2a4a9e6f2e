"""ONNX Runtime Training."""
import tempfile
import warnings
from pathlib import Path

import with_onnx_runtime  # before PyTorch: it limits the threads
import torch

import problem

warnings.simplefilter("ignore")
with tempfile.TemporaryDirectory() as temporary:
    folder = Path(temporary)
    with_onnx_runtime.write_artifacts(problem, problem.torch_model(), torch.zeros(problem.BATCH, problem.FEATURES), ["x", "logits"], folder)
    with_onnx_runtime.serve(problem, folder, problem.batches())
