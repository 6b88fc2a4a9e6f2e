"""One job on ranks beside the same job on one: models, strategies, syncs and meshes as factors, any row of which can be run."""
import itertools
import json
import math
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ranks_test
from ledger_forms import Exchange, payload_of, step_payload, wrong_buckets
from ranks_test import BATCH_NORM_ROWS, EXAMPLES, REFERENCES, titan_job

STEPS = 20
MICRO = 2
SIMULATED = 8  # ranks
# Largest relative difference of a loss. Ranks add gradients in another order; AdamW divides them by their own size.
BOUNDS = {("f32", "sgd"): 1e-5, ("f32", "adamw"): 1e-4, ("bf16", "sgd"): 1e-3, ("bf16", "adamw"): 1e-3}
ROUNDED = 5e-3  # gradients are rounded to 8 bits before they are summed
# Largest difference of an element of the first gradient, in units of the last place of the tensor's largest.
ULPS = {"f32": 64, "bf16": 2**17}
LAST_PLACE = 2.0**-23


@dataclass(frozen=True)
class Model:
    file: Path
    data: Path
    extra: tuple = ()  # options of titan-compile
    tables: tuple = ()  # parameters whose rows are looked up
    tied: tuple = ()  # of those, what the head multiplies by
    rows: tuple = ()  # (buffer, elements) of each statistic of a batch
    cancelled: tuple = ()  # parameters whose gradient is zero but for rounding: a norm takes them off again


MODELS = {
    "mlp": Model(REFERENCES / "norm-gelu/dynamo-train.onnx", REFERENCES / "norm-gelu/data.npz", ("--set", "loss.ignore_index=-1")),
    "gpt": Model(REFERENCES / "gpt-nano/dynamo-train.onnx", REFERENCES / "gpt-nano/data.npz", (), ("wte.weight", "wpe.weight"), ("wte.weight",)),
    "llama": Model(REFERENCES / "gpt-llama-tied/dynamo-train.onnx", REFERENCES / "gpt-llama-tied/data.npz", (), ("wte.weight",), ("wte.weight",)),
    "norms": Model(REFERENCES / "batch-norms/dynamo-train.onnx", REFERENCES / "batch-norms/data.npz",
                   rows=BATCH_NORM_ROWS, cancelled=("inner.bias",)),
}

FACTORS = {
    "strategy": ("ddp", "zero1", "zero2", "fsdp", "hsdp"),
    "model": tuple(MODELS),
    # Ranks on replicate, on shard: processes, eight of them simulated by the interpreter.
    "mesh": ((2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (8, 1), (1, 8), (2, 4)),
    "k": (1, 2, 3, 4),
    "sync": ("auto", "deferred", "immediate", "every 2", "shard"),  # shard: immediate there, deferred on replicate
    "reshard": ("always", "never", "step"),
    "dtype": ("f32", "bf16"),
    "reduce": ("f32", "bf16"),
    "optimizer": ("sgd", "adamw"),
    "clip": (0.0, 0.1),
    "overlap": ("on", "small", "off"),  # small: several buckets, more of them on their way; off: none of the passes
}


def is_valid(row):
    replicate, shard = row["mesh"]
    cuts = row["strategy"] != "ddp"
    gathers = row["strategy"] in ("fsdp", "hsdp")
    return (not cuts or shard > 1) and (row["strategy"] != "hsdp" or replicate > 1) and (row["sync"] != "every 2" or row["k"] % 2 == 0) \
        and (row["sync"] != "shard" or shard > 1) and (gathers or row["reshard"] == "always") and (row["reduce"] == "f32" or row["dtype"] == "bf16")


CELL = {"strategy": FACTORS["strategy"], "k": (1, 2, 4), "sync": ("deferred", "immediate", "auto"), "overlap": (("on", "small"), ("off",)),
        "model": FACTORS["model"], "ranks": (2, 4, SIMULATED)}


def cells(seed):
    """Rows of all strategies, microbatches, syncs and models, with and without overlap, each on 2, 4 and 8 ranks; what else a row says is drawn."""
    draw = random.Random(seed)
    rows = []
    for cell in (dict(zip(CELL, values)) for values in itertools.product(*CELL.values())):
        mesh = mesh_of(cell["strategy"], cell["ranks"])
        choices = {name: cell[name] if name == "overlap" else (cell[name],) if name in cell else values for name, values in FACTORS.items()} | {"mesh": (mesh,)}
        candidates = [row for row in (dict(zip(choices, values)) for values in itertools.product(*choices.values())) if mesh and is_valid(row)]
        rows += [draw.choice(candidates)] if candidates else []
    return rows


def mesh_of(strategy, ranks):
    """The mesh of so many ranks that is the strategy's own; None: it has none."""
    if strategy == "hsdp":
        return (2, ranks // 2) if ranks > 2 else None
    return (ranks, 1) if strategy == "ddp" else (1, ranks)


def described(row):
    replicate, shard = row["mesh"]
    return " ".join([row["strategy"], row["model"], f"{replicate}x{shard}", *(f"{name}={row[name]}" for name in list(FACTORS)[3:])])


def every_of(row):
    """Microbatches of a rank between two sums over an axis, by axis."""
    k, sync = row["k"], row["sync"]
    both = {"deferred": k, "immediate": 1, "every 2": 2}.get(sync)
    if both:
        return {"replicate": both, "shard": both}
    immediate = sync == "shard" or row["strategy"] == "zero2"
    return {"replicate": k, "shard": 1 if immediate else k}


def sync_options(sync):
    if sync == "every 2":
        return ["--set", "mesh.sync_every=2"]
    value = '{ shard = "immediate", replicate = "deferred" }' if sync == "shard" else f'"{sync}"'
    return ["--set", f"mesh.sync={value}"]


SMALL_BUCKET = 4000
OVERLAP_PASSES = ("bucket-collectives", "split-collectives", "prefetch-gathers", "overlap-reductions")


def overlap_options(overlap):
    if overlap == "off":
        return [f"--disable-pass=titan-schedule-{name}" for name in OVERLAP_PASSES]
    return ["--set", f"mesh.bucket={SMALL_BUCKET}", "--set", "mesh.prefetch=2"] if overlap == "small" else []


def recipe_of(row, microbatches):
    momentum = "momentum = 0.9\nlr = 0.05\n" if row["optimizer"] == "sgd" else "weight_decay = 0.1\nlr = 3e-3\neps = 1e-5\n"
    return (f'[optimizer]\nkind = "{row["optimizer"]}"\n{momentum}clip_norm = {row["clip"]}\n[batch]\nmicro = {MICRO}\nglobal = {MICRO * microbatches}\n'
            f'[data]\ntrain = "data.npz"\nshuffle = false\n[precision]\ncompute = "{row["dtype"]}"\nreduce_dtype = "{row["reduce"]}"\n[train]\nsteps = {STEPS}\n')


@dataclass(frozen=True)
class Outcome:
    wrong: list  # lines: what differs from one rank, or from the closed forms
    loss: float = None  # the largest relative difference of a loss; None: the interpreter compared every pass


def table(rows, outcomes):
    """Lines of Markdown: cells by model and ranks."""
    columns = list(itertools.product(CELL["model"], CELL["ranks"]))
    lines = {}
    for row, outcome in zip(rows, outcomes):
        line = lines.setdefault((row["strategy"], row["k"], row["sync"], "off" if row["overlap"] == "off" else "on"), {})
        number = "ok" if outcome.loss is None else f"{outcome.loss:.0e}".replace("0e+00", "0").replace("e-0", "e-")
        line[row["model"], math.prod(row["mesh"])] = "**FAIL**" if outcome.wrong else f"{number} {'bf16' if row['dtype'] == 'bf16' else ''}".strip()
    yield f"| strategy | k | sync | overlap | {' | '.join(f'{model}, {ranks}' for model, ranks in columns)} |"
    yield "|---" * (4 + len(columns)) + "|"
    for key, line in lines.items():
        yield f"| {' | '.join(map(str, key))} | {' | '.join(line.get(column, '–') for column in columns)} |"


class Matrix:
    """Runs rows. Jobs of one rank are run once for all rows that they are the measure of."""

    def __init__(self, tools, scratch):
        self.tools, self.scratch = Path(tools), Path(scratch)
        self.alone = {}

    def compile(self, row, microbatches, name, *options):
        model = MODELS[row["model"]]
        recipe, job = self.scratch / f"{name}.toml", self.scratch / name
        recipe.write_text(recipe_of(row, microbatches))
        titan_job.compile_job(self.tools, model.file, recipe, job, *model.extra, *options)
        return job

    def train(self, row, job, out, launcher=()):
        """(losses, {parameter: first gradient}): the optimizer's first moment after the first step is a multiple of it."""
        data = MODELS[row["model"]].data
        common = [*launcher, job, "train", "--out", out, "--data", data]
        titan_job.run([*common, "--steps", 1])
        moments = titan_job.read_safetensors(next(out.glob("checkpoints/step-*")) / "optimizer")
        titan_job.run([*common, "--steps", STEPS])
        return titan_job.losses_of(out), {name: moment for name, moment in moments.items() if name.endswith((".exp_avg", ".momentum_buffer"))}

    def measure(self, row, microbatches):
        key = (row["model"], microbatches, row["dtype"], row["optimizer"], row["clip"])
        if key not in self.alone:
            folder = Path(tempfile.mkdtemp(dir=self.scratch))
            job = self.compile(row | {"reduce": "f32"}, microbatches, folder.name + "-job")
            self.alone[key] = self.train(row, job, folder / "run")
        return self.alone[key]

    def check(self, row):
        """The outcome of a row, beside one rank and the closed forms."""
        replicate, shard = row["mesh"]
        ranks = replicate * shard
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        simulated = ranks == SIMULATED
        job = self.compile(row, row["k"] * ranks, folder.name + "-job", *ranks_test.mesh({"replicate": replicate, "shard": shard}), *sync_options(row["sync"]),
                           *overlap_options(row["overlap"]), "--set", f'mesh.strategy="{row["strategy"]}"',
                           *(["--set", f'mesh.reshard="{row["reshard"]}"'] if row["reshard"] != "always" else []),
                           *(["--check-passes"] if simulated else []))
        if simulated:
            return Outcome(self.wrong_plan(row, job)[0])
        launcher = (self.tools / "titan-run", "-n", ranks)
        expected, found = self.measure(row, row["k"] * ranks), self.train(row, job, folder / "run", launcher)
        bound = ROUNDED if row["reduce"] == "bf16" else BOUNDS[row["dtype"], row["optimizer"]]
        loss = max(abs(a - b) / abs(b) for a, b in zip(found[0], expected[0], strict=True))
        return Outcome([*([] if loss <= bound else [f"a loss differs by {loss:.1e}, bound {bound:.0e}"]), *self.wrong_gradients(row, found[1], expected[1]),
                        *self.wrong_payload(row, job, launcher)], loss)

    def wrong_gradients(self, row, found, expected):
        if found.keys() != expected.keys() or not expected:
            return [f"first moments of {sorted(found)}, not of {sorted(expected)}"]
        wrong = []
        for name, gradient in expected.items():
            if name.rpartition(".")[0] in MODELS[row["model"]].cancelled:
                continue
            ulps = np.abs(found[name] - gradient).max() / (np.abs(gradient).max() * LAST_PLACE)
            if not ulps <= ULPS[row["dtype"]]:
                wrong.append(f"the first gradient of '{name}' differs by {ulps:.0f} ulp, bound {ULPS[row['dtype']]}")
        return wrong

    def wrong_plan(self, row, job):
        """(differences, ledger of the plan): closed forms = the plan's."""
        info = json.loads(titan_job.run([job, "info", "--json"]))
        shapes = {p["name"]: tuple(p["shape"]) for p in info["parameters"] if p["trainable"]}
        replicate, shard = row["mesh"]
        exchange = Exchange(row["strategy"], replicate, shard, row["k"], every_of(row), row["reshard"], 2 if row["reduce"] == "bf16" else 4,
                            2 if row["dtype"] == "bf16" else 4, MODELS[row["model"]].tables, MODELS[row["model"]].tied,
                            bucket=SMALL_BUCKET if row["overlap"] == "small" else Exchange.bucket, rows=MODELS[row["model"]].rows)
        plan = json.loads(titan_job.run([job, "plan", "--json"]))["communication"]
        forms, planned = step_payload(exchange, shapes), payload_of(plan)
        wrong = [f"{kind} over {', '.join(axes)} in {phase}: {planned[kind, axes, phase]} bytes planned, the form is {forms[kind, axes, phase]}"
                 for kind, axes, phase in sorted(forms.keys() | planned.keys()) if planned[kind, axes, phase] != forms[kind, axes, phase]]
        return wrong + (wrong_buckets(exchange, shapes, plan) if row["overlap"] != "off" else []), plan

    def wrong_payload(self, row, job, launcher):
        """Closed forms = the plan's ledger = what the copy loop counted."""
        replicate, shard = row["mesh"]
        wrong, plan = self.wrong_plan(row, job)
        counted = json.loads(titan_job.run([*launcher, job, "profile", "--data", MODELS[row["model"]].data, "--steps", 2, "--json",
                                            "--trace", job.with_suffix(".trace")]))["communication"]
        of_step, counted = ([line for line in rows if line["function"] == "step"] for rows in (plan, counted))
        names = ("phase", "kind", "axes", "dtype", "source", "count", "payload")
        if [[line[name] for name in names] for line in counted] != [[line[name] for name in names] for line in of_step]:
            wrong.append("the rows that were counted are not those of the plan")
        for line in counted:
            group = math.prod({"replicate": replicate, "shard": shard}[axis] for axis in line["axes"])
            whole = line["payload"] * (group if line["kind"] == "all_gather" else 1)
            groups, passes = replicate * shard // group, 2 if line["kind"] == "all_reduce" else 1
            if line["moved_all"] != groups * passes * (group - 1) * whole:
                wrong.append(f"{line['kind']} of {line['source']}: {line['moved_all']} bytes moved by all, {line['payload']} are one rank's sources")
        return wrong


__all__ = ["EXAMPLES", "FACTORS", "Matrix", "Outcome", "cells", "described", "is_valid", "table"]
