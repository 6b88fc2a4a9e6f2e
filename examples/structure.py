"""Exports the structure of a PyTorch model: an ONNX file without weights, in the way that keeps a model trainable.

That is train mode, no optimisation, so that dropout and every parameter's own name survive, and named dimensions. The same PyTorch writes the
same bytes.
"""
import argparse
import logging
import tempfile
import warnings
from pathlib import Path

import onnx
import torch

LARGEST = 300 * 1024
# Notes about a node: which module it is of, which is what `profile` shows; and what Titan recovers names from where an exporter lost them.
MODULES = {"pkg.torch.onnx.name_scopes"}
NAMING = MODULES | {"pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node"}


def kept_notes(node, notes, tensors):
    """Of those that stay: no constant needs any; what reads one of `tensors` needs all, for these have names to be told."""
    if getattr(node, "op_type", "") == "Constant":
        return set()
    return NAMING if hasattr(node, "op_type") and tensors.intersection(node.input) else notes


def strip(model, notes):
    """Removes what holds file paths of the exporting machine; with `notes` all about nodes but these, which is more than half of a large file."""
    graph = model.graph
    tensors = {tensor.name for tensor in graph.initializer}
    if notes:
        del graph.value_info[:]
    for holder in [model, graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer]:
        kept = [entry for entry in holder.metadata_props
                if (entry.key in kept_notes(holder, notes, tensors) if notes else entry.key != "pkg.torch.onnx.stack_trace")]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)


def export_decoder(description, build, positions, default, notes):
    """The command [--length T] [OUTPUT]: writes the structure of build(), a language model, with a length named `seq`, which the recipe or the job
    sets, or of T tokens."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("output", nargs="?", type=Path, default=default)
    parser.add_argument("--length", type=int, help="fix the number of positions (default: a dimension named seq)")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    dims = {0: ("batch", 1, 65536)} | ({} if arguments.length else {1: ("seq", 2, positions)})
    ids = torch.zeros(2, arguments.length or 16, dtype=torch.int64)
    export_structure(build(), ids, ["ids", "logits"], dims, arguments.output, notes)


def export_structure(model, sample, names, dims, output, notes=None):
    """Writes `model`, called with `sample`, to `output`; `names` are those of its input and its output, `dims` the dimensions of `sample` that have
    names: {dimension: (name, least, most)}. `notes` about nodes are kept, None: all."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    dynamic = {dimension: torch.export.Dim(name, min=least, max=most) for dimension, (name, least, most) in dims.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / output.name
        torch.onnx.export(model.train(), (sample,), str(path), dynamo=True, optimize=False, opset_version=23, external_data=True,
                          input_names=names[:1], output_names=names[1:], dynamic_shapes=(dynamic,), verbose=False)
        exported = onnx.load(str(path), load_external_data=False)
    strip(exported, notes)
    content = exported.SerializeToString(deterministic=True)
    assert len(content) <= LARGEST, f"{len(content)} bytes: the weights are inside"
    output.write_bytes(content)
    print(f"export: {output}: {len(content)} bytes, {sum(p.numel() for p in model.parameters())} parameters, no weights")
