"""What one build makes of a case: the job's plan, code and schedule, and what training it left."""
import ctypes
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import titan_job

STEPS, THREADS, LIMIT = 20, (1, 2), 600  # seconds for one command
ENVIRONMENT = 3  # exit code of a job that the machine cannot run: oneDNN has no bf16 on every CPU
# Keys of a line of metrics.jsonl that are no numbers of the training.
UNSTABLE = {"seconds", "memory", "resident"}


@dataclass
class Run:
    rows: list = field(default_factory=list)  # of metrics.jsonl, without UNSTABLE
    tensors: dict = field(default_factory=dict)  # {"model": {name: array}, "optimizer": {name: array}}
    error: str = ""  # why it failed
    code: int = 0


@dataclass
class Outcome:
    error: str = ""  # why there is no job
    seconds: float = 0.0
    peak: int = 0  # bytes
    plan: dict = field(default_factory=dict)
    folder: Path | None = None  # with the stages and the object file
    runs: dict = field(default_factory=dict)  # {"onednn, 2 threads": Run}


class Build:
    """The tools of a build tree."""

    def __init__(self, folder):
        self.tools = Path(folder) / "bin"
        for tool in ("titan-compile", "titan-opt"):
            if not os.access(self.tools / tool, os.X_OK):
                raise titan_job.Failure(f"{folder} is no build tree: {self.tools / tool} is missing: build {tool} there")

    def compile_command(self, case, *options):
        return [self.tools / "titan-compile", case.model, "--recipe", case.recipe, *case.options, *options]


def libraries():
    """The values of --gemm that this machine has."""
    try:
        ctypes.CDLL("libdnnl.so.2")
    except OSError:
        return ("generated",)
    return ("onednn", "generated")


def measured(command, log):
    """Runs `command`, its output into `log`; returns its wall time in seconds and its peak memory in bytes."""
    start = time.monotonic()
    with open(log, "w") as output:
        process = subprocess.Popen([str(part) for part in command], stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)  # what subprocess waits with tells no peak of one child
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        said = Path(log).read_text(errors="replace").strip().splitlines()
        raise titan_job.Failure(f"exit {process.returncode}: {said[-1] if said else 'no message'}")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def high_water(build, case, folder):
    """Bytes of the job of `case` without a limit of memory."""
    job = folder / "unlimited"
    measured(build.compile_command(case, "-o", job), folder / "log")
    return json.loads(titan_job.run([job, "plan", "--json"], LIMIT))["memory"]["high_water"]


def train(job, case, gemm, threads, out):
    command = [job, "train", "--out", out, "--data", case.data, "--steps", STEPS, "--threads", threads, f"--gemm={gemm}"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode != 0:
        return Run(error=(done.stderr.strip().splitlines() or ["no message"])[-1], code=done.returncode)
    rows = [{key: value for key, value in row.items() if key not in UNSTABLE} for row in titan_job.metrics_of(out)]
    folder = out / "checkpoints" / f"step-{STEPS:08d}"
    return Run(rows, {part: titan_job.read_safetensors(folder / part) for part in ("model", "optimizer")})


def observe(build, case, options, folder):
    """Everything about `case` under `build`; files go to `folder`."""
    outcome, job = Outcome(folder=folder), folder / "job"
    folder.mkdir(parents=True)
    try:
        outcome.seconds, outcome.peak = measured(build.compile_command(case, *options, "-o", job, f"--save-temps={folder}"), folder / "log")
        outcome.plan = json.loads(titan_job.run([job, "plan", "--json", "--threads", 1], LIMIT))
    except titan_job.Failure as failure:
        outcome.error = str(failure)
        return outcome
    if case.data is None:
        return outcome
    for gemm in libraries():
        for threads in THREADS:
            name = f"{gemm}, {threads} thread{'s' if threads > 1 else ''}"
            try:
                outcome.runs[name] = train(job, case, gemm, threads, folder / name.replace(", ", "-").replace(" ", "-"))
            except (titan_job.Failure, subprocess.TimeoutExpired) as failure:
                outcome.runs[name] = Run(error=str(failure))
    return outcome


def stage(outcome, name):
    """The printed stage of a compilation."""
    found = sorted(outcome.folder.glob(f"*.{name}.mlir"))
    if len(found) != 1:
        raise titan_job.Failure(f"--save-temps wrote {len(found)} files *.{name}.mlir, expected 1")
    return found[0]


def object_bytes(outcome):
    found = sorted(outcome.folder.glob("*.a"))
    return found[0].read_bytes() if len(found) == 1 else None


def assembly(build, case, options):
    return titan_job.run(build.compile_command(case, *options, "--emit=codegen"), LIMIT)


def generic(build, path):
    """A printed stage with every op in MLIR's generic form."""
    return titan_job.run([build.tools / "titan-opt", "--mlir-print-op-generic", path], LIMIT)
