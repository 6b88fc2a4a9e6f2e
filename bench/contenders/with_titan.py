"""Training with Titan: a job compiled from an ONNX export, and its runs."""
import json
import os
import resource
import subprocess
import sys
import time

import protocol

protocol.limit_threads()


def run(command):
    """The standard output of a command; where it fails, its last word is this contender's."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit((done.stderr.strip().splitlines() or [f"exit {done.returncode} of {command[0]}"])[-1])
    return done.stdout


def version(tools):
    # "titan-compile 0.1.0 (LLVM 22.1.8)"
    return run([tools / "titan-compile", "--version"]).split()[1]


def recipe(problem, batch, data):
    """The text of what both benchmarks have: a run that ends when it is told to."""
    return f"""\
[optimizer]
kind = "adamw"
lr = {problem.LEARNING_RATE}
betas = {list(problem.BETAS)}
eps = {problem.EPSILON}
weight_decay = {problem.WEIGHT_DECAY}
no_decay = []
[batch]
micro = {batch}
global = {batch}
[data]
train = "{data}"
shuffle = false
[train]
steps = 1000000
"""


class Job:
    """An executable, whose runs each get a directory of their own; `peak`: bytes, of those that `first_steps` watched; `compile_peak`: bytes
    of titan-compile."""

    def __init__(self, tools, model, recipe, path, data, *options):
        # A name of its own: two builds may be contenders of one row. The weights lie beside it.
        self.path = path.with_name(f"{path.name}-{os.getpid()}")
        self.data, self.runs, self.peak = data, 0, 0
        run([tools / "titan-compile", model, "--recipe", recipe, "-o", self.path, *options])
        # Of all children that have ended: what told the version is smaller.
        self.compile_peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024

    def command(self, name, *options):
        return [self.path, name, "--data", self.data, "--threads", str(protocol.THREADS), *options]

    def train_command(self, *options):
        """Of a fresh run, and its directory."""
        self.runs += 1
        out = self.path.with_name(f"{self.path.name}-run-{self.runs}")
        return self.command("train", "--out", out, *options), out

    def first_steps(self, steps, *options):
        """The rows of metrics.jsonl of a fresh run's first `steps` steps. The run is killed then: it has nothing to save."""
        command, out = self.train_command(*options)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        metrics = out / "metrics.jsonl"
        try:
            while process.poll() is None:
                self.peak = max(self.peak, protocol.peak_bytes(process.pid))
                if metrics.exists() and metrics.read_bytes().count(b"\n") >= steps:
                    break
                time.sleep(0.02)
            else:
                sys.exit((process.stderr.read().strip().splitlines() or [f"exit {process.returncode} of {self.path}"])[-1])
        finally:
            process.kill()
            process.wait()
        return [json.loads(line) for line in metrics.read_text().splitlines()[:steps]]

    def bound(self):
        """The bound of a step and what it is made of, as `profile` says: the shorter of two, in case something disturbs the machine. Nothing
        where the machine has no library of products."""
        def measured():
            said = json.loads(run(self.command("profile", "--steps", "1", "--json", "--trace", self.path.with_name("trace.json"))))
            return said["bound"] | {"gemm_ceiling_flops": said["gemm_ceiling_flops"]}

        bounds = [bound for bound in (measured(), measured()) if bound["gemm_ceiling_flops"]]
        return min(bounds, key=lambda bound: bound["seconds"], default=None)


def serve(problem, tools, arguments, bound=False):
    """Compiles a job from `arguments` of Job and answers the driver; with `bound` it says what a step takes at least."""
    started = time.perf_counter()
    job = Job(tools, *arguments)
    facts = {"version": version(tools), "compile": time.perf_counter() - started, "compile_peak_bytes": job.compile_peak}
    job.first_steps(1)
    facts["first_step"] = time.perf_counter() - started
    facts["losses"] = [line["loss"] for line in job.first_steps(problem.CHECKED)]
    if bound:
        facts["bound"] = job.bound()

    def measure(steps):
        rows = job.first_steps(problem.CHECKED + problem.WARM_UP + steps)
        return {"seconds": sum(line["seconds"] for line in rows[-steps:]), "peak_bytes": job.peak}

    protocol.answer_requests(facts, measure)
