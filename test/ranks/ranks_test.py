"""What tests of jobs on ranks have in common: jobs for a mesh, ranks that are started and found, and what they left."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import titan_job  # noqa: E402
import training_test  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REFERENCES = training_test.REFERENCES
# (buffer, elements) of each statistic of a batch of the reference batch-norms: one of its norms is called twice.
BATCH_NORM_ROWS = tuple((f"{norm}.running_{kind}", 6) for norm in ("norm", "norm", "inner") for kind in ("mean", "var"))
LIMIT = 120  # seconds that any run of a test may take, many times what it takes
GONE = 10  # seconds in which a job ends whose rank is lost


def mesh(axes):
    """The option of titan-compile for {axis: ranks}."""
    return ["--set", "mesh.axes={ " + ", ".join(f"{axis} = {ranks}" for axis, ranks in axes.items()) + " }"]


def write_images(path, samples, seed=0):
    """Data of examples/mlp: noise, which is as good as glyphs where two runs are compared."""
    random = np.random.default_rng(seed)
    np.savez(path, x=random.integers(0, 256, (samples, 1, 28, 28), np.uint8), targets=random.integers(0, 36, samples))


class RanksTest(training_test.ToolsTest):
    """Jobs are compiled once a class, each in a scratch folder that all its tests share."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.shared = Path(temporary.name)
        cls.jobs = {}

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.scratch = Path(temporary.name)

    def compile(self, name, model, recipe, axes, *options):
        """A job for {axis: ranks}; {}: for one rank."""
        if name not in self.jobs:
            job = self.shared / name
            titan_job.compile_job(self.tools, model, recipe, job, *(mesh(axes) if axes else []), *options)
            self.jobs[name] = job
        return self.jobs[name]

    def mlp(self, axes, batch=64, *options):
        """examples/mlp in microbatches of 16 samples, and its data."""
        data = self.shared / "images.npz"
        if not data.exists():
            write_images(data, 512)
        name = "-".join(["mlp", str(batch), *(f"{axis}{ranks}" for axis, ranks in axes.items()), *options]).replace("/", "_")
        return self.compile(name, EXAMPLES / "mlp/mlp.onnx", EXAMPLES / "mlp/train.toml", axes, "--set", "batch.micro=16",
                            "--set", f"batch.global={batch}", *options), data

    def command(self, ranks, *command):
        launcher = [] if ranks is None else [self.tools / "titan-run", "-n", ranks]
        return [str(part) for part in [*launcher, *command]]

    def start(self, ranks, *command):
        """The ranks of a job, running; None: without titan-run."""
        process = subprocess.Popen(self.command(ranks, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="surrogateescape")  # samples are bytes
        self.addCleanup(end, process)
        return process

    def finish(self, process, limit=LIMIT):
        """(exit code, stdout, stderr) of a process that ends by itself."""
        out, err = process.communicate(timeout=limit)
        return process.returncode, out, err

    def run_ranks(self, ranks, *command):
        return self.finish(self.start(ranks, *command))

    def train(self, ranks, job, data, out, *options):
        """(losses, checkpoint as {name: array}) of a run that ends with exit code 0."""
        code, _, err = self.run_ranks(ranks, job, "train", "--out", self.scratch / out, "--data", data, *options)
        self.assertEqual(code, 0, err)
        return self.result(out)

    def result(self, out):
        folders = sorted((self.scratch / out / "checkpoints").glob("step-*"))
        state = titan_job.read_safetensors(folders[-1] / "model")
        state.update(titan_job.read_safetensors(folders[-1] / "optimizer"))
        return titan_job.losses_of(self.scratch / out), state

    def checkpoints(self, out):
        return sorted(path.name for path in (self.scratch / out / "checkpoints").iterdir())

    def wait_for(self, process, ready):
        """Until `ready()` holds or the process has ended, which is a failure."""
        while not ready():
            try:
                process.wait(timeout=0.002)
            except subprocess.TimeoutExpired:
                continue
            self.fail(f"exit {process.returncode} before it was time: {process.communicate()[1]}")

    def wait_until_gone(self, pids, seconds=2):
        """Of processes whose parent was killed: the kernel ends them next."""
        end = time.monotonic() + seconds
        while alive := [pid for pid in pids if is_alive(pid)]:
            self.assertLess(time.monotonic(), end, f"still there: {alive}")
            time.sleep(0.002)

    def lines(self, out):
        """Of steps."""
        metrics = self.scratch / out / "metrics.jsonl"
        return metrics.read_bytes().count(b"grad_norm") if metrics.exists() else 0

    def wait_for_steps(self, process, out, steps):
        """Of a new run, or more than an earlier run logged."""
        self.wait_for(process, lambda: self.lines(out) >= steps)

    def assert_same(self, found, expected):
        self.assertEqual(found[0], expected[0])
        self.assert_same_tensors(found[1], expected[1])

    def assert_told_once(self, err, *texts):
        errors = [line for line in err.splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, err)
        for text in texts:
            self.assertIn(text, errors[0])

    def faults(self, case, job):
        """The job with RankFaults.cpp in its ranks; `case` is a line of sh that says what happens to whom."""
        return self.wrapper(job, f"export LD_PRELOAD='{self.tools.parent}/test/libtitan_rank_faults.so'", case)

    def wrapper(self, job, *cases):
        """A script that is started in place of the job; `cases` are lines of sh, with the rank in $TITAN_RANK and the job in $JOB."""
        script = self.scratch / "wrapper"
        script.write_text("\n".join(["#!/bin/sh", f"JOB='{job}'", *cases, 'exec "$JOB" "$@"', ""]))
        script.chmod(0o755)
        return script


def ranks_of(process):
    """{rank: pid} of the children of a titan-run."""
    found = {}
    for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        variables = []
        with contextlib.suppress(OSError):  # a child may end meanwhile
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        for variable in variables:  # none before the child has become the job
            if variable.startswith(b"TITAN_RANK="):
                found[int(variable.split(b"=")[1])] = int(pid)
    return found


def is_alive(pid):
    """A process that nobody has waited for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before the open, or before the read
        return False


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate()


def plan_of(job):
    return json.loads(titan_job.run([job, "plan", "--json"]))


main = training_test.main
__all__ = ["EXAMPLES", "GONE", "REFERENCES", "RanksTest", "is_alive", "main", "mesh", "os", "plan_of", "ranks_of", "titan_job", "write_images"]
