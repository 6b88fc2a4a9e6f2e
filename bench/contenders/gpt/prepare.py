"""Writes what the contenders of one row start from: prepare.py FOLDER ROW BATCH LENGTH [ort]

FOLDER/row.json            sizes, number of parameters
FOLDER/weights.safetensors the initial weights, under PyTorch's names
FOLDER/tokens.bin          uint16 tokens; a batch is consecutive windows
FOLDER/model.onnx          the export for Titan, its weights beside it
FOLDER/ort/                with `ort`: training artifacts of an opset-15 export, for ONNX Runtime (its exporter and its tools need more memory than
                           its training, which is measured), or failure.txt: why there are none
"""
import json
import logging
import sys
import warnings
from pathlib import Path

import with_onnx_runtime  # before PyTorch: it limits the threads
import torch
from safetensors.torch import save_file

import problem

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))
from gpt import CHAR, GPT, GPT2

SIZES = {"char": CHAR, "gpt2": GPT2}


class FlatLogits(torch.nn.Module):
    """ONNX Runtime's loss wants one row a target."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        logits = self.model(ids)
        return logits.reshape(-1, logits.shape[-1])


def write_export(model, ids, path):
    batch = torch.export.Dim("batch", min=1, max=65536)
    torch.onnx.export(model.train(), (ids,), str(path), dynamo=True, optimize=False, opset_version=23, external_data=True,
                      input_names=["ids"], output_names=["logits"], dynamic_shapes=({0: batch},), verbose=False)


def main(folder, name, batch, length, *artifacts):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = SIZES[name]
    torch.manual_seed(0)
    model = GPT(sizes)
    weights = dict(model.named_parameters())  # the tied head once
    row = {"model": name, "batch": batch, "length": length, "layers": sizes.layers, "width": sizes.width, "heads": sizes.heads,
           "vocabulary": sizes.vocabulary, "parameters": sum(p.numel() for p in weights.values())}
    save_file({key: value.detach().contiguous() for key, value in weights.items()}, folder / "weights.safetensors")
    problem.write_tokens(folder, sizes.vocabulary, batch, length)
    ids = torch.zeros(batch, length, dtype=torch.int64)
    write_export(model, ids, folder / "model.onnx")
    (folder / "row.json").write_text(json.dumps(row))  # from here on there is something to compare
    if "ort" in artifacts:
        with_onnx_runtime.prepare(problem, FlatLogits(model), ids, ["ids", "logits"], folder / "ort")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
