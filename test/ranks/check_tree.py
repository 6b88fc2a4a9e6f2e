#!/usr/bin/env python3
"""Under mesh.reduce = "tree" a job has the same bits on any mesh: the losses, norms and each tensor of the checkpoint are those of one rank, by strategy, mesh,
sync, model (dropout, tied tables and bf16 among them), reshard and recomputation.

    check_tree.py --tools build/dev/bin [--seed 7] [--row 'fsdp gpt 1x2 …'] [--jobs 2]
"""
import argparse
import concurrent.futures
import json
import math
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import ranks_test
from covering_array import covering_array
from ledger_forms import Exchange, padded_elements, payload_of, step_payload
from ranks_test import BATCH_NORM_ROWS, REFERENCES, titan_job, training_test

STEPS, MICRO = 6, 2
NORM_BOUND = 1e-6  # relative: squares and microbatches in another order
TREE = ("--set", "mesh.reduce=tree")


@dataclass(frozen=True)
class Model:
    file: Path
    data: Path
    microbatches: int  # of a step, on all ranks together
    extra: tuple = ()
    matrix_bytes: int = 4  # of an element of a matrix where it is computed with
    tables: tuple = ()  # parameters whose rows are looked up
    tied: tuple = ()  # of those, what the head multiplies by
    rows: tuple = ()  # (buffer, elements) of each statistic of a batch


MODELS = {
    "mlp": Model(REFERENCES / "norm-gelu/dynamo-train.onnx", REFERENCES / "norm-gelu/data.npz", 4, ("--set", "loss.ignore_index=-1", "--set", "optimizer.clip_norm=0.1")),
    "gpt": Model(training_test.GPT_DROPOUT / "dynamo-train.onnx", REFERENCES / "gpt-nano/data.npz", 8, ("--set", "memory.loss_chunks=2", "--set", "optimizer.clip_norm=0.5")),
    "llama": Model(REFERENCES / "gpt-llama-tied/dynamo-train.onnx", REFERENCES / "gpt-llama-tied/data.npz", 4, ("--set", "precision.compute=bf16"), 2,
                   ("wte.weight",), ("wte.weight",)),
    "norms": Model(REFERENCES / "batch-norms/dynamo-train.onnx", REFERENCES / "batch-norms/data.npz", 8, rows=BATCH_NORM_ROWS),
}

FACTORS = {
    "strategy": ("ddp", "zero1", "zero2", "fsdp", "hsdp"),
    "model": tuple(MODELS),
    "mesh": ((2, 1), (1, 2), (4, 1), (1, 4), (2, 2)),  # ranks on replicate, on shard
    "sync": ("auto", "deferred", "immediate", "shard"),  # shard: immediate there, deferred on replicate
    "reshard": ("always", "never", "step"),
    "remat": ("auto", "full"),
}


def is_valid(row):
    replicate, shard = row["mesh"]
    gathers = row["strategy"] in ("fsdp", "hsdp")
    return (row["strategy"] == "ddp" or shard > 1) and (row["strategy"] != "hsdp" or replicate > 1) and (row["sync"] != "shard" or shard > 1) \
        and (gathers or row["reshard"] == "always")


def described(row):
    replicate, shard = row["mesh"]
    return " ".join([row["strategy"], row["model"], f"{replicate}x{shard}", *(f"{name}={row[name]}" for name in ("sync", "reshard", "remat"))])


def options_of(row):
    replicate, shard = row["mesh"]
    sync = '{ shard = "immediate", replicate = "deferred" }' if row["sync"] == "shard" else f'"{row["sync"]}"'
    return [*ranks_test.mesh({"replicate": replicate, "shard": shard}), "--set", f"mesh.strategy={row['strategy']}", "--set", f"mesh.sync={sync}",
            *(["--set", f"mesh.reshard={row['reshard']}"] if row["reshard"] != "always" else []), "--set", f"memory.remat={row['remat']}"]


def every_of(row, local):
    """Microbatches of a rank between two sums over an axis, by axis."""
    both = {"deferred": local, "immediate": 1}.get(row["sync"])
    immediate = row["sync"] == "shard" or row["strategy"] == "zero2"
    return {"replicate": both or local, "shard": both or (1 if immediate else local)}


class Tree:
    """Runs rows. The job of one rank is run once for each model."""

    def __init__(self, tools, scratch):
        self.tools, self.scratch = Path(tools), Path(scratch)
        self.alone = {name: None for name in MODELS}
        self.locks = {name: threading.Lock() for name in MODELS}

    def compile(self, model, *options):
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        (folder / "train.toml").write_text(f'[optimizer]\nkind = "adamw"\nweight_decay = 0.1\nlr = 3e-3\n[batch]\nmicro = {MICRO}\n'
                                           f'global = {MICRO * model.microbatches}\n[data]\ntrain = "data.npz"\nshuffle = false\n[train]\nsteps = {STEPS}\n')
        titan_job.compile_job(self.tools, model.file, folder / "train.toml", folder / "job", *model.extra, *TREE, *options)
        return folder / "job"

    def launcher(self, ranks):
        return [self.tools / "titan-run", "-n", ranks] if ranks > 1 else []

    def train(self, model, job, ranks, out, steps=STEPS):
        titan_job.run([*self.launcher(ranks), job, "train", "--out", out, "--data", model.data, "--steps", steps])
        folder = sorted(out.glob("checkpoints/step-*"))[-1]
        figures = [(row["loss"], row["grad_norm"]) for row in titan_job.metrics_of(out)]
        return figures, titan_job.read_safetensors(folder / "model") | titan_job.read_safetensors(folder / "optimizer")

    def measure(self, name):
        with self.locks[name]:
            if self.alone[name] is None:
                job = self.compile(MODELS[name])
                self.alone[name] = self.train(MODELS[name], job, 1, job.with_name("run"))
            return self.alone[name]

    def check(self, row):
        """What differs from one rank, or from the closed forms; a list of lines."""
        model, ranks = MODELS[row["model"]], row["mesh"][0] * row["mesh"][1]
        job = self.compile(model, *options_of(row))
        found = self.train(model, job, ranks, job.with_name("run"))
        return [*differences(found, self.measure(row["model"])), *self.wrong_sums(row, job)]

    def wrong_sums(self, row, job):
        """What ranks exchange is what the closed forms say, and so is what the levels of the tree hold."""
        replicate, shard = row["mesh"]
        model = MODELS[row["model"]]
        local = model.microbatches // (replicate * shard)
        info = json.loads(titan_job.run([job, "info", "--json"]))
        shapes = {p["name"]: tuple(p["shape"]) for p in info["parameters"] if p["trainable"]}
        exchange = Exchange(row["strategy"], replicate, shard, local, every_of(row, local), row["reshard"], 4, model.matrix_bytes, model.tables, model.tied,
                            tree=True, rows=model.rows)
        forms = step_payload(exchange, shapes)
        plan = json.loads(titan_job.run([job, "plan", "--json"]))
        planned = payload_of(plan["communication"])
        held = sum(held_elements(shape, row, shard) for shape in shapes.values()) * 4
        levels = local.bit_length() - 1
        expected = {"levels": levels, "gradients": held, "total": levels * held}
        wrong = [] if plan["memory"]["tree_sums"] == expected else [f"{plan['memory']['tree_sums']} are planned, the form is {expected}"]
        return wrong + [f"{key}: {planned[key]} bytes planned, the form is {forms[key]}" for key in sorted(forms.keys() | planned.keys())
                if planned[key] != forms[key]]

    def check_norm(self, name):
        """The norm of the first step is that of a job that sums squares in any order."""
        model = MODELS[name]
        job = self.compile(model, "--set", "mesh.reduce=fast")
        (_, fast), = self.train(model, job, 1, job.with_name("run"), 1)[0]
        tree = self.measure(name)[0][0][1]
        return [] if abs(tree - fast) <= NORM_BOUND * fast else [f"the norm is {tree}, of a fast sum {fast}"]

    def check_changes(self):
        """One run that goes on with other ranks, again and again: the bits of one rank."""
        model = MODELS["gpt"]
        out = Path(tempfile.mkdtemp(dir=self.scratch)) / "run"
        meshes = ({"strategy": "fsdp", "mesh": (1, 2)}, {"strategy": "hsdp", "mesh": (2, 2)}, {"strategy": "ddp", "mesh": (4, 1)})
        for i, mesh in enumerate(meshes):
            job = self.compile(model, *options_of(mesh | {"sync": "auto", "reshard": "always", "remat": "auto"}))
            found = self.train(model, job, mesh["mesh"][0] * mesh["mesh"][1], out, (i + 1) * STEPS // len(meshes))
        return differences(found, self.measure("gpt"))


def held_elements(shape, row, shard):
    """Of a gradient between two microbatches, on one rank."""
    padded = padded_elements(shape, shard, tree=True)
    is_part = row["strategy"] != "ddp" and (row["sync"] in ("immediate", "shard") or (row["sync"], row["strategy"]) == ("auto", "zero2"))
    return padded // shard if is_part and padded else math.prod(shape)


def differences(found, expected):
    wrong = [f"loss and norm {i}: {a!r}, one rank has {b!r}" for i, (a, b) in enumerate(zip(found[0], expected[0], strict=True)) if a != b]
    if found[1].keys() != expected[1].keys():
        return [*wrong, f"tensors {sorted(found[1].keys() ^ expected[1].keys())} are in one of both"]
    return wrong + [f"'{name}' differs in {(found[1][name] != tensor).sum()} of {tensor.size} elements"
                    for name, tensor in expected[1].items() if found[1][name].tobytes() != tensor.tobytes()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--row", help="runs the rows whose description has these words")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rows = covering_array(FACTORS, is_valid, arguments.seed)
    if arguments.row:
        rows = [row for row in rows if set(arguments.row.split()) <= set(described(row).split())]
    print(f"{len(rows)} rows, seed {arguments.seed}", flush=True)
    failed, start = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tree = Tree(arguments.tools, scratch)
        checks = [(described(row), lambda row=row: tree.check(row)) for row in rows]
        if not arguments.row:
            checks.extend((f"norm of {name}", lambda name=name: tree.check_norm(name)) for name in MODELS)
            checks.append(("a run that goes on with other ranks", tree.check_changes))

        def wrong_of(check):
            try:
                return check[1]()
            except titan_job.Failure as failure:
                return [str(failure)]

        for (name, _), wrong in zip(checks, pool.map(wrong_of, checks)):
            failed += bool(wrong)
            print("\n    ".join([f"{'FAIL' if wrong else 'ok  '} {name}", *wrong[:8]]), flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
