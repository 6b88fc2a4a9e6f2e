"""Training with Titan: a job compiled from an ONNX export, and its runs, on one rank or several."""
import json
import os
import resource
import select
import subprocess
import sys
import time
from pathlib import Path

import protocol

protocol.limit_threads()
AXES = {"ddp": "replicate", "fsdp": "shard"}  # on which a strategy has its ranks


def run(command):
    """The standard output of a command; where it fails, its last word is this contender's."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit((done.stderr.strip().splitlines() or [f"exit {done.returncode} of {command[0]}"])[-1])
    return done.stdout


def version(tools):
    # "titan-compile 0.1.0 (LLVM 22.1.8)"
    return run([tools / "titan-compile", "--version"]).split()[1]


def recipe(problem, micro, batch, data, strategy=None):
    """The text of what all benchmarks have: a run that ends when it is told to. `micro` samples are a microbatch; with a `strategy` it is for RANKS
    ranks."""
    mesh = f'[mesh]\nstrategy = "{strategy}"\naxes = {{ {AXES[strategy]} = {protocol.RANKS} }}\n' if strategy else ""
    return f"""\
[optimizer]
kind = "adamw"
lr = {problem.LEARNING_RATE}
betas = {list(problem.BETAS)}
eps = {problem.EPSILON}
weight_decay = {problem.WEIGHT_DECAY}
no_decay = []
[batch]
micro = {micro}
global = {batch}
[data]
train = "{data}"
shuffle = false
[train]
steps = 1000000
{mesh}"""


def name_model(folder, model, *options):
    """Lets contenders of FOLDER train a model that titan-compile knows by name, with these options of it."""
    (folder / "model.txt").write_text("\n".join([model, *options]))


def model_of(folder, *options):
    """The model that FOLDER names, with its options, or the export in it with `options`."""
    named = folder / "model.txt"
    return named.read_text().splitlines() if named.exists() else [folder / "model.onnx", *options]


def children(process):
    """The numbers of its child processes."""
    try:
        return Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def kill(process):
    """Ends a process and the ranks that it started, and waits until all are gone: the next measurement has the machine for itself."""
    ends = [os.pidfd_open(int(child)) for child in children(process.pid)]
    process.kill()  # titan-run takes its ranks with it
    process.wait()
    for end in ends:
        select.select([end], [], [])
        os.close(end)


class Job:
    """An executable, whose runs each get a directory of their own; `peak`: bytes of a rank, of those that `first_steps` watched; `compile_peak`:
    bytes of titan-compile. `ranks`: as its recipe says."""

    def __init__(self, tools, model, recipe, path, data, *options, ranks=1):
        # A name of its own: two builds may be contenders of one row. The weights lie beside it.
        self.path = path.with_name(f"{path.name}-{os.getpid()}")
        self.data, self.runs, self.peak, self.ranks = data, 0, 0, ranks
        self.launcher = [tools / "titan-run", "-n", str(ranks)] if ranks > 1 else []
        run([tools / "titan-compile", model, "--recipe", recipe, "-o", self.path, *options])
        # Of all children that have ended: what told the version is smaller.
        self.compile_peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    def command(self, name, *options, threads=protocol.THREADS):
        """`threads`: of all ranks together."""
        return [*self.launcher, self.path, name, "--data", self.data, "--threads", str(threads // self.ranks), *options]

    def train_command(self, *options, threads=protocol.THREADS):
        """Of a fresh run, and its directory."""
        self.runs += 1
        out = self.path.with_name(f"{self.path.name}-run-{self.runs}")
        return self.command("train", "--out", out, *options, threads=threads), out

    def first_steps(self, steps, *options, **environment):
        """The rows of metrics.jsonl of a fresh run's first `steps` steps. The run is killed then: it has nothing to save."""
        command, out = self.train_command(*options)
        metrics = out / "metrics.jsonl"
        with subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                while process.poll() is None:
                    trains = children(process.pid) if self.launcher else [process.pid]
                    self.peak = max(self.peak, *map(protocol.peak_bytes, trains), 0)
                    if metrics.exists() and metrics.read_bytes().count(b"\n") >= steps:
                        break
                    time.sleep(0.02)
                else:
                    sys.exit((process.stderr.read().strip().splitlines() or [f"exit {process.returncode} of {self.path}"])[-1])
            finally:
                kill(process)
        return [json.loads(line) for line in metrics.read_text().splitlines()[:steps]]

    def profile(self, steps):
        return json.loads(run(self.command("profile", "--steps", str(steps), "--json", "--trace", self.path.with_name("trace.json"))))

    def bound(self):
        """The bound of a step and what it is made of, as `profile` says: the shorter of two, in case something disturbs the machine. Nothing
        where the machine has no library of products."""
        def measured():
            said = self.profile(1)
            return said["bound"] | {"gemm_ceiling_flops": said["gemm_ceiling_flops"]}

        bounds = [bound for bound in (measured(), measured()) if bound["gemm_ceiling_flops"]]
        return min(bounds, key=lambda bound: bound["seconds"], default=None)

    def exchanges(self, steps=3):
        """What `profile` says of the first rank's waits and copies, seconds a step: of all, and of each that takes longest."""
        said = self.profile(steps)
        total = {group["name"]: group["seconds_per_step"] for group in said["groups"]}
        rows = [{"label": row["label"], "seconds": row["seconds"] / steps} for row in said["kernels"] if row["group"] in ("collectives", "copies")]
        return {"step": said["seconds_per_step"], "collectives": total.get("collectives", 0), "copies": total.get("copies", 0),
                "longest": sorted(rows, key=lambda row: -row["seconds"])[:3]}


def serve(problem, tools, arguments, bound=False, ranks=1):
    """Compiles a job from `arguments` of Job and answers the driver; with `bound` it says what a step takes at least."""
    started = time.perf_counter()
    job = Job(tools, *arguments, ranks=ranks)
    facts = {"version": version(tools), "compile": time.perf_counter() - started, "compile_peak_bytes": job.compile_peak}
    job.first_steps(1)
    facts["first_step"] = time.perf_counter() - started
    facts["losses"] = [line["loss"] for line in job.first_steps(problem.CHECKED)]
    if bound:
        facts["bound"] = job.bound()
    if ranks > 1:
        facts["exchanges"] = job.exchanges()

    def measure(steps):
        rows = job.first_steps(problem.CHECKED + problem.WARM_UP + steps)
        return {"seconds": sum(line["seconds"] for line in rows[-steps:]), "peak_bytes": job.peak}

    protocol.answer_requests(facts, measure)
