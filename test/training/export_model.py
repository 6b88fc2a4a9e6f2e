"""The ways in which people export a PyTorch model to ONNX, and the removal of what must not be committed."""
import contextlib
import io
import warnings

import onnx
import torch

# The metadata that holds paths of the exporting machine; what names are recovered from stays.
PRIVATE = {"pkg.torch.onnx.stack_trace"}
# What names are recovered from: all that is kept of large graphs, in which metadata outweighs the rest.
NAMING = {"pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node"}
# Also what lists the source's parameters, and what says which of them an optimizer took out.
LISTING = NAMING | {"pkg.torch.export.ExportedProgram.graph_signature", "pkg.onnxscript.rewriter.rule_name"}

WAYS = {
    "dynamo-train": dict(dynamo=True, training=True, dynamic=True, optimize=False, opset_version=23),
    "dynamo-eval": dict(dynamo=True, training=False, dynamic=True, optimize=False, opset_version=20),
    "dynamo-optimized": dict(dynamo=True, training=False, dynamic=False, optimize=True),
    "dynamo-17": dict(dynamo=True, training=False, dynamic=False, optimize=True, opset_version=17),
    "legacy-train": dict(dynamo=False, training=True, dynamic=True, opset_version=17),
    "legacy-eval": dict(dynamo=False, training=False, dynamic=False, opset_version=17),
    "legacy-13": dict(dynamo=False, training=False, dynamic=True, opset_version=13),
}


def strip_metadata(model, metadata=None):
    """Removes paths of the exporting machine from all metadata, in place; with `metadata`, a set of keys, all other keys."""
    def strip(holder):
        kept = [entry for entry in holder.metadata_props if (entry.key in metadata if metadata else entry.key not in PRIVATE)]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)
        if hasattr(holder, "doc_string"):
            holder.ClearField("doc_string")

    def graph(g):
        strip(g)
        if metadata:
            del g.value_info[:]
        for item in [*g.node, *g.input, *g.output, *g.value_info, *g.initializer]:
            strip(item)

    strip(model)
    graph(model.graph)
    for function in model.functions:
        for node in function.node:
            strip(node)
    return model


def export(module, samples, input_names, path, dynamo, training, dynamic, optimize=True, opset_version=None,
           external_data=False, fold=None, metadata=None):
    """Exports `module` at `samples` (a tuple of tensors) to `path`. `dynamic`: True names dimension 0 `batch`; or {input: {dimension: name}}.
    `fold` is for the legacy exporter; None: what it does by itself. `metadata` is what to keep of it, by key; None: all."""
    module.train(training)
    if dynamic is True:
        dynamic = {name: {0: "batch"} for name in input_names}
    options = dict(input_names=list(input_names), output_names=["output"], opset_version=opset_version)
    if dynamo:
        options.update(dynamo=True, optimize=optimize, external_data=external_data, verbose=False)
        if dynamic:
            symbols = {name: torch.export.Dim(name, min=1, max=4096) for dims in dynamic.values() for name in dims.values()}
            options["dynamic_shapes"] = tuple({d: symbols[s] for d, s in dynamic[name].items()} for name in input_names)
    else:
        mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
        options.update(dynamo=False, training=mode, do_constant_folding=not training if fold is None else fold)
        if dynamic:
            options["dynamic_axes"] = dynamic
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, samples, str(path), **options)
    model = strip_metadata(onnx.load(str(path), load_external_data=False), metadata)
    if external_data and not dynamo:  # which the legacy exporter does for large models only
        onnx.external_data_helper.convert_model_to_external_data(model, location=f"{path.name}.data", size_threshold=0)
        onnx.external_data_helper.write_external_data_tensors(model, str(path.parent))
    path.write_bytes(model.SerializeToString(deterministic=True))
