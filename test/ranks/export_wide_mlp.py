#!/usr/bin/env python3
"""Writes Inputs/wide-mlp.onnx, the structure of an MLP whose every dimension 1,024 ranks divide (needs torch and onnx)."""
import sys
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))

from structure import NAMING, export_structure  # noqa: E402

WIDTH = 4096

if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    export_structure(model, torch.zeros(4, WIDTH), ["x", "logits"], {0: ("batch", 1, 1024)}, HERE / "Inputs/wide-mlp.onnx", notes=NAMING)
