"""Small modules that nobody has seen before, made of what exporters fold, merge, rename and drop (module_parts.py): exported by PyTorch in many
ways, trained five steps beside PyTorch. Names, shapes, ties, losses and each weight's own update must be PyTorch's, or the account of the import
must say what differs (test/training/account.py): a silent difference fails. A failing model is made smaller, and printed.

Each model takes the seven ways of test/training/export_model.py and --drawn others of module_ways.py: opsets 13 to 25, f32 and f64, folded or not,
with names for batch and length, with external data. 200 models take ten minutes of two cores.

    test/peers/run-with-peers test/peers/random_modules.py --tools build/dev/bin [--count 12] [--seed 7] [--way legacy-eval] [--reduce 0]
    test/peers/run-with-peers test/peers/random_modules.py --tools build/dev/bin --spec '{"seed": ...}' --way 'legacy eval folded 16 static f64'
"""
import argparse
import collections
import concurrent.futures
import contextlib
import functools
import gc
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
import titan_job
from account import LOSS_TOLERANCE, Export, Source
from judged_run import Verdict, judged_run
from make_references import aliases
from module_parts import data_of, draw_spec, inputs_of, model_of, smaller
from module_ways import DTYPES, WAYS, draw_way, export, is_way, options_of
from torch_training import train

ROWS, STEPS, EXAMPLE = 4, 5, 3
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"


def recipe_of(spec, named):
    """`named`: whether the export has a name for the length."""
    length = f"[model]\ndims = {{ length = {spec['length']} }}\n" if named else ""
    return (f'{length}[loss]\nkind = "{"cross_entropy" if spec.get("embedded") else "mse"}"\n[optimizer]\nkind = "sgd"\nlr = 0.05\n'
            f'[batch]\nmicro = {ROWS}\nglobal = {ROWS}\n[data]\ntrain = "data.npz"\nshuffle = false\n'
            f"[train]\nsteps = {STEPS}\n[checkpoint]\nevery = 1\nkeep = {STEPS}\n")


@contextlib.contextmanager
def quiet():
    """Without what exporters write, from C++ too."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def keep_what_exports_share():
    """torch.onnx makes its table of operators anew for each export, which takes as long as a small model does. Nothing here changes it."""
    with contextlib.suppress(ImportError, AttributeError):  # private, and of some versions
        from torch.onnx._internal.exporter._registration import ONNXRegistry
        ONNXRegistry.from_torchlib = classmethod(functools.cache(ONNXRegistry.from_torchlib.__func__))
    gc.freeze()  # what is loaded stays
    gc.set_threshold(50_000, 20, 20)


def state_of(model):
    return {name: tensor.detach().clone().numpy() for name, tensor in model.state_dict().items()}


def trained_by_pytorch(model, recipe, data, inputs, dtype):
    """Source of `model`, which is trained in place; None where training diverges."""
    model.train(False)
    model._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)
    gradients = set()
    parameters = list(model.named_parameters(remove_duplicate=False))  # all names of each
    for name, parameter in parameters:
        # What is frozen is trained too: no export says so.
        parameter.requires_grad_(True)
        parameter.register_hook(lambda gradient, name=name: gradients.add(name))
    states = [state_of(model)]
    first = {**recipe, "train": {**recipe["train"], "steps": 1}}
    train(model, first, data, inputs, dtype)
    states.append(state_of(model))
    model.load_state_dict({name: torch.from_numpy(value) for name, value in states[0].items()})
    losses = train(model, recipe, data, inputs, dtype)
    states.append(state_of(model))
    if not np.all(np.isfinite(losses)) or max(losses) > 100 * losses[0]:
        return None
    saved, one = set(model.state_dict()), {}
    for name, buffer in model.named_buffers(remove_duplicate=False):
        one.setdefault(id(buffer), []).append(name)
    ties = aliases(model) + [names for names in one.values() if len(names) > 1]
    return Source(states, ties, {name: name in saved for names in one.values() for name in names},
                  {name for name, _ in parameters if name not in gradients}, losses)


def read_export(path):
    """Export of the file: only what the account must close over."""
    model = onnx.load(str(path), load_external_data=False)
    read = {name for node in model.graph.node for name in node.input} | {output.name for output in model.graph.output}
    floats = [tensor.name for tensor in model.graph.initializer if tensor.data_type in FLOATS and tensor.name in read]
    text = next((entry.value for entry in model.graph.metadata_props if entry.key == SIGNATURE), "")
    return Export(floats, re.findall(r"target='([^']*)'", text))


def check_way(tools, spec, way, sources, scratch, cache):
    """`sources`: Source by type of floats, filled."""
    inputs = inputs_of(spec)
    options, dtype = options_of(way, spec, inputs)
    if any(part["kind"] == "detached" for part in spec["parts"]) and not (options["dynamo"] and (options.get("opset_version") or 18) >= 18):
        return Verdict("not exported", ["detach() is not in the file"])
    if any(part.get("form") == "spectral" for part in spec["parts"]):
        options = options | dict(training=False)  # a power iteration in each forward is another model
    recipe = recipe_of(spec, "length" in way.split() and spec["sequence"])
    return check_module(tools, lambda: model_of(spec), data_of(spec, ROWS * STEPS, DTYPES[dtype]), inputs, recipe, options, dtype, sources, scratch,
                        cache)


def check_module(tools, make, data, inputs, recipe, options, dtype, sources, scratch, cache=None):
    """The module that `make` returns, always with the same weights, called with the arrays `inputs` of `data`."""
    scratch.mkdir(parents=True, exist_ok=True)
    np.savez(scratch / "data.npz", **data)
    (scratch / "train.toml").write_text(recipe)
    floats = torch.from_numpy(np.zeros(1, DTYPES[dtype])).dtype
    model = make()
    model._apply(lambda tensor: tensor.to(floats) if tensor.is_floating_point() else tensor)
    try:
        with quiet():
            export(model, tuple(torch.from_numpy(data[name][:EXAMPLE]) for name in inputs), inputs, scratch / "model.onnx", **options)
    except Exception as error:  # the exporter's own failures are not ours
        return Verdict("not exported", [f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"])
    if dtype not in sources:
        sources[dtype] = trained_by_pytorch(make(), tomllib.loads(recipe), data, inputs, floats)
    if sources[dtype] is None:
        return Verdict("diverges")
    verdict = judged_run(tools, scratch / "model.onnx", scratch / "train.toml", scratch / "data.npz", read_export(scratch / "model.onnx"),
                         sources[dtype], scratch, cache)
    if floats == torch.float32 and verdict.kind == "wrong" and all("silent: losses" in line or "note:" in line for line in verdict.lines):
        if amplifies_rounding(sources[dtype], make(), tomllib.loads(recipe), data, inputs):
            return Verdict("diverges")
    return verdict


def amplifies_rounding(source, model, recipe, data, inputs):
    """Are PyTorch's own losses in f32, those of `source`, and in f64 almost so far apart that it would count as a difference?"""
    model._apply(lambda tensor: tensor.to(torch.float32) if tensor.is_floating_point() else tensor)
    data = {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in data.items()}
    exact = trained_by_pytorch(model, recipe, data, inputs, torch.float64)
    return exact is None or not np.allclose(source.losses, exact.losses, rtol=LOSS_TOLERANCE / 4, atol=0)


def check(tools, spec, way, sources=None, scratch=None, cache=None):
    with tempfile.TemporaryDirectory() as temporary:
        try:
            return check_way(tools, spec, way, {} if sources is None else sources, scratch or Path(temporary), cache)
        except (subprocess.TimeoutExpired, titan_job.Failure, json.JSONDecodeError, KeyError) as error:
            return Verdict("wrong", [f"{type(error).__name__} {error}"])


def reduced(tools, spec, way):
    """The smallest model of `spec`'s parts that still fails in `way`."""
    found = spec
    while found:
        spec = found
        found = next((candidate for candidate in smaller(spec) if check(tools, candidate, way).kind == "wrong"), None)
    return spec


def work(arguments):
    tools, spec, ways = arguments
    sources = {}
    with tempfile.TemporaryDirectory() as cache:  # the ways of one model have most kernels in common
        return spec, [(way, check(tools, spec, way, sources, cache=cache)) for way in ways]


def start():
    """Of each process."""
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    keep_what_exports_share()


def drawn_models(arguments):
    """(spec, ways) of each seed."""
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        draw = random.Random(seed)
        spec = draw_spec(draw, seed)
        # The exporters by turns: torch.export's takes ten times as long.
        drawn = [draw_way(draw, i % 3 == 0) for i in range(arguments.drawn)]
        yield spec, arguments.way or [*WAYS, *drawn]


def report(spec, way, verdict, arguments, reduce):
    if verdict.kind == "wrong":
        print(f"FAIL seed {spec['seed']} --way '{way}'", *verdict.lines, sep="\n    ", flush=True)
        if reduce and not arguments.keep:
            small = reduced(arguments.tools, spec, way)
            print(f"    reduced: --way '{way}' --spec '{json.dumps(small)}'", *check(arguments.tools, small, way).lines[:4], sep="\n        ", flush=True)
    elif arguments.verbose:
        print(f"{verdict.kind} seed {spec['seed']} {way}", *verdict.lines[:4], sep="\n    ", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, help="the first of COUNT seeds; by default the time")
    parser.add_argument("--way", action="append", help=f"only this one; may be repeated: one of {', '.join(WAYS)}, or words as a failure prints them")
    parser.add_argument("--drawn", type=int, default=3, help="ways beside those seven (3)")
    parser.add_argument("--spec", help="one model, as a failure prints it")
    parser.add_argument("--keep", type=Path, help="keep export, data and job of --spec in this folder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reduce", type=int, default=5, help="how many failures are made smaller (5)")
    parser.add_argument("--verbose", action="store_true", help="also what is refused or explained")
    arguments = parser.parse_args()
    if unknown := [way for way in arguments.way or [] if not is_way(way)]:
        parser.error(f"no way: {unknown}")
    start()
    if arguments.seed is None:
        arguments.seed = int(time.time()) % 10**8
    began, counts, causes = time.monotonic(), collections.Counter(), collections.Counter()
    if arguments.spec:
        models = [(json.loads(arguments.spec), arguments.way or list(WAYS))]
    else:
        models = list(drawn_models(arguments))
        print(f"--seed {arguments.seed} --count {arguments.count}", flush=True)
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, initializer=start) as pool:
        if arguments.keep:
            results = [(spec, [(way, check(arguments.tools, spec, way, None, arguments.keep / way.replace(" ", "-"))) for way in ways])
                       for spec, ways in models]
        else:
            results = pool.map(work, [(arguments.tools, spec, ways) for spec, ways in models])
        for spec, verdicts in results:
            for way, verdict in verdicts:
                counts[verdict.kind] += 1
                report(spec, way, verdict, arguments, counts["wrong"] <= arguments.reduce)
                if verdict.kind in ("refused", "not exported"):
                    causes[re.sub(r"'[^']*'|\d+", "_", verdict.lines[-1] if verdict.lines else "")[:160]] += 1
    for cause, count in causes.most_common(12):
        print(f"{count:5} {cause}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()), f"in {time.monotonic() - began:.0f} s")
    print(f"{sum(counts.values()) - counts['wrong']} passed, {counts['wrong']} failed")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
