"""Exports the demo's model from PyTorch: mlp.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/mlp/export.py [OUTPUT]      (scripts/install-peers makes .venv)

The same PyTorch writes the same bytes.
"""
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from structure import export_structure

CLASSES = 36


class Hidden(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.linear = nn.Linear(inputs, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        return self.dropout(nn.functional.gelu(self.norm(self.linear(x))))


class GlyphClassifier(nn.Module):
    """[batch, 1, 28, 28] images to logits over CLASSES characters."""

    def __init__(self, width=256):
        super().__init__()
        self.hidden = nn.Sequential(Hidden(28 * 28, width), Hidden(width, width))
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.classifier(self.hidden(x.flatten(1)))


if __name__ == "__main__":
    torch.manual_seed(0)
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("mlp.onnx")
    export_structure(GlyphClassifier(), torch.zeros(2, 1, 28, 28), ["x", "logits"], {0: ("batch", 1, 65536)}, output)
