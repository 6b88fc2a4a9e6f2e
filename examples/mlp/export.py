"""Exports the demo's model from PyTorch: mlp.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/mlp/export.py [OUTPUT]      (scripts/install-peers makes .venv)

The options of the export are those that keep a model trainable: train mode, no optimisation, so that dropout and every
parameter's own name survive, and a named batch dimension. The same PyTorch writes the same bytes.
"""
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import onnx
import torch
from torch import nn

CLASSES = 36
LARGEST = 300 * 1024


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


def strip_paths(model):
    """Removes the metadata that holds file paths of the exporting machine."""
    graph = model.graph
    for holder in [model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        kept = [entry for entry in holder.metadata_props if entry.key != "pkg.torch.onnx.stack_trace"]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)


def main(output):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = GlyphClassifier().train()
    batch = torch.export.Dim("batch", min=1, max=65536)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / output.name
        torch.onnx.export(model, (torch.zeros(2, 1, 28, 28),), str(path), dynamo=True, optimize=False, opset_version=23,
                          external_data=True, input_names=["x"], output_names=["logits"],
                          dynamic_shapes=({0: batch},), verbose=False)
        exported = onnx.load(str(path), load_external_data=False)
    strip_paths(exported)
    content = exported.SerializeToString(deterministic=True)
    assert len(content) <= LARGEST, f"{len(content)} bytes: the weights are inside"
    output.write_bytes(content)
    print(f"export: {output}: {len(content)} bytes, {sum(p.numel() for p in model.parameters())} parameters, no weights")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("mlp.onnx"))
