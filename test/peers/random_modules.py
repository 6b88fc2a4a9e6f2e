"""Small modules that nobody has seen before, made of what exporters fold, merge, rename and drop (module_parts.py): exported by PyTorch in each
of its ways, trained five steps beside PyTorch. Names, shapes, ties, losses and each weight's own update must be PyTorch's, or a line of Titan's
account must name what differs: a silent difference fails. A failing model is made smaller, and printed.

    test/peers/run-with-peers test/peers/random_modules.py --tools build/dev/bin [--count 12] [--seed 7] [--way legacy-eval] [--no-reduce]
    test/peers/run-with-peers test/peers/random_modules.py --tools build/dev/bin --spec '{"seed": ...}'
"""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import logging
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
import titan_job
from export_model import WAYS, export
from make_references import aliases
from module_parts import Model, draw_spec, without
from torch_training import train

ROWS, STEPS = 4, 5
RECIPE = f"""[loss]
kind = "mse"
[optimizer]
kind = "sgd"
lr = 0.05
[batch]
micro = {ROWS}
global = {ROWS}
[data]
train = "data.npz"
shuffle = false
[train]
steps = {STEPS}
"""
LOSS_TOLERANCE = 1e-4   # relative
UPDATE_TOLERANCE = 0.02  # of the norm of what training added to the tensor


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


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


class Verdict:
    """What one way of one model came to, with the reasons. `kind`: ok; explained (notes name every difference); refused (by Titan), not
    exported (by PyTorch), diverges (in PyTorch); wrong."""

    def __init__(self, kind, lines=()):
        self.kind, self.lines = kind, list(lines)


def differences(tensors, state, start, ties, buffers):
    """(names, line) of what the trained tensors are otherwise than in PyTorch. `state` and `start`: the state_dict after and before."""
    found = []
    same = {name: names for names in ties for name in names}
    accounted = set()
    for name, value in state.items():
        names = same.get(name, [name])
        stored = [alias for alias in names if alias in tensors]
        accounted.update(stored)
        if not stored:
            if name not in buffers and name == names[0]:
                found.append((names, f"{name} {list(value.shape)} is not there"))
            continue
        if len(stored) > 1:
            if name == names[0]:
                found.append((stored, f"{' = '.join(stored)} is stored {len(stored)} times"))
            continue
        mine = tensors[stored[0]]
        if mine.shape != value.shape:
            found.append((stored, f"{stored[0]} has shape {list(mine.shape)}, in PyTorch {list(value.shape)}"))
            continue
        update = np.linalg.norm(value - start[name])
        error = np.linalg.norm(mine - value)
        if not error <= UPDATE_TOLERANCE * update + 2e-6 * np.linalg.norm(value) + 1e-7:
            found.append((stored, f"{stored[0]} is {error:.2g} from PyTorch's after an update of {update:.2g}"))
    for name in sorted(set(tensors) - accounted):
        found.append(([name], f"{name} {list(tensors[name].shape)} is not in the state_dict"))
    return found


def check_way(tools, spec, way, scratch):
    scratch.mkdir(parents=True, exist_ok=True)
    width = spec["width"]
    shape = (spec["length"], width) if spec["sequence"] else (width,)
    numbers = np.random.default_rng(spec["seed"])
    samples = ROWS * STEPS
    data = {"x": numbers.standard_normal((samples, *shape)).astype(np.float32),
            "targets": numbers.standard_normal((samples, *shape[:-1], spec["outputs"])).astype(np.float32)}
    np.savez(scratch / "data.npz", **data)
    (scratch / "train.toml").write_text(RECIPE)
    try:
        with quiet():
            export(Model(spec), (torch.from_numpy(data["x"][:7]),), ["x"], scratch / "model.onnx", **WAYS[way])
    except Exception as error:  # the exporter's own failures are not ours
        return Verdict("not exported", [f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"])
    code, _, said = run([tools / "titan-compile", scratch / "model.onnx", "--recipe", scratch / "train.toml", "-o", scratch / "job"])
    if code not in (0, 1):
        return Verdict("wrong", [f"titan-compile ends with {code}", *said.splitlines()[-3:]])
    if code == 1:
        return Verdict("refused", said.splitlines()[-2:])
    notes = [line for line in said.splitlines() if "note:" in line]
    code, _, failed = run([scratch / "job", "train", "--out", scratch / "run", "--data", scratch / "data.npz", "--threads", 1])
    if code != 0:
        return Verdict("wrong", [f"the job ends with {code}", *failed.splitlines()[-3:]])
    losses = [row["loss"] for row in titan_job.metrics_of(scratch / "run")]
    tensors = titan_job.checkpoint(scratch / "run", STEPS)

    model = Model(spec)
    model.train(False)
    start = {name: tensor.detach().clone().numpy() for name, tensor in model.state_dict().items()}
    # What is frozen is trained too: no export says so.
    expected = train(model, tomllib.loads(RECIPE), data, ["x"])
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    buffers = {name for name, _ in model.named_buffers()}
    unused = {name for name, parameter in model.named_parameters() if parameter.grad is None and np.array_equal(state[name], start[name])}

    if not np.all(np.isfinite(expected)) or max(expected) > 100 * expected[0]:
        return Verdict("diverges")
    wrong = []
    if None in losses:
        return Verdict("wrong", [f"losses {losses}, PyTorch's {expected}", *notes])
    found = differences(tensors, state, start, aliases(model), buffers)
    text = "\n".join(notes)
    silent = [line for names, line in found if not any(f"'{name}'" in text for name in names)]
    wrong += [f"silent: {line}" for line in silent]
    errors = np.abs(np.subtract(losses, expected)) / np.maximum(np.abs(expected), 1e-12)
    if not np.all(errors <= LOSS_TOLERANCE):
        line = f"losses {losses[-1]:.6g} and {expected[-1]:.6g} at the end, worst relative error {errors.max():.1e}"
        named = [line for names, line in found if any(f"'{name}'" in text for name in names) and not set(names) <= unused]
        if not notes or not found:
            wrong.append(f"silent: {line}")
        elif not named:
            wrong.append(f"losses without a note that explains them: {line}")
    if wrong:
        return Verdict("wrong", wrong + notes)
    return Verdict("explained" if found or not np.all(errors <= LOSS_TOLERANCE) else "ok", [line for _, line in found])


def check(tools, spec, way, scratch=None):
    with tempfile.TemporaryDirectory() as temporary:
        try:
            return check_way(tools, spec, way, scratch or Path(temporary))
        except (subprocess.TimeoutExpired, titan_job.Failure) as error:
            return Verdict("wrong", [str(error)])


def reduced(tools, spec, way):
    """The smallest model of `spec`'s parts that still fails in `way`."""
    smaller = True
    while smaller:
        smaller = False
        candidates = [without(spec, i) for i in reversed(range(len(spec["parts"])))]
        candidates += [{**spec, "moved": False}] if spec["moved"] else []
        candidates += [{**spec, "parts": [{**p, "residual": False} if j == i else p for j, p in enumerate(spec["parts"])]}
                       for i in range(len(spec["parts"])) if spec["parts"][i]["residual"]]
        for candidate in candidates:
            if check(tools, candidate, way).kind == "wrong":
                spec, smaller = candidate, True
                break
    return spec


def work(arguments):
    tools, spec, way = arguments
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    return spec, way, check(tools, spec, way)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1, help="the first of COUNT seeds")
    parser.add_argument("--way", choices=list(WAYS), action="append", help="only this one; may be repeated")
    parser.add_argument("--spec", help="one model, as a failure prints it")
    parser.add_argument("--keep", type=Path, help="keep export, data and job of --spec in this folder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-reduce", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="also what is refused or explained")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    ways = arguments.way or list(WAYS)
    if arguments.spec:
        specs = [json.loads(arguments.spec)]
    else:
        specs = [draw_spec(random.Random(seed), seed) for seed in range(arguments.seed, arguments.seed + arguments.count)]
    counts, failed, causes = collections.Counter(), 0, collections.Counter()
    if arguments.keep:
        results = [(spec, way, check(arguments.tools, spec, way, arguments.keep / way)) for spec in specs for way in ways]
    else:
        pool = concurrent.futures.ProcessPoolExecutor(arguments.jobs)
        results = pool.map(work, [(arguments.tools, spec, way) for spec in specs for way in ways])
    for spec, way, verdict in results:
        counts[verdict.kind] += 1
        if verdict.kind == "wrong":
            failed += 1
            print(f"FAIL seed {spec['seed']} {way}", *verdict.lines, sep="\n    ", flush=True)
            if not arguments.no_reduce and not arguments.keep:
                small = reduced(arguments.tools, spec, way)
                print("    reduced:", json.dumps(small), *check(arguments.tools, small, way).lines[:4], sep="\n        ", flush=True)
        elif verdict.kind in ("refused", "not exported"):
            causes[re.sub(r"'[^']*'|\d+", "_", verdict.lines[-1] if verdict.lines else "")[:160]] += 1
        if arguments.verbose and verdict.kind != "wrong":
            print(f"{verdict.kind} seed {spec['seed']} {way}", *verdict.lines[:4], sep="\n    ", flush=True)
    for cause, count in causes.most_common(12):
        print(f"{count:5} {cause}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    print(f"{sum(counts.values()) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
