"""What every error test needs: the tools, a scratch folder, one compiled job, and the contract of an error.

An error is one line `error: ...` at the end of stderr, with the exit code that its cause has; what existed before is
unchanged, byte for byte, and nothing is left behind.
"""
import contextlib
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "training"))  # titan_job
REFERENCES = HERE.parent / "training" / "references"
TOOLS = Path(os.environ.get("TITAN_TOOLS", HERE.parents[1] / "build" / "dev" / "bin"))
COMPILE, OPT, RUN, CKPT = (TOOLS / name for name in ("titan-compile", "titan-opt", "titan-run", "titan-ckpt"))

PEER = TOOLS.parent / "test" / "titan_checkpoint_peer"

BAD_INPUT, USAGE, ENVIRONMENT, INTERNAL, RUN_FAILED = 1, 2, 3, 4, 5

MODEL = REFERENCES / "relu" / "dynamo-train.onnx"
INPUTS, CLASSES = 12, 5  # of MODEL
RECIPE = """
[optimizer]
kind = "adam"
lr = 1e-3
[batch]
micro = 4
global = 8
[data]
train = "data.npz"
[train]
steps = 4
"""


def tree(*paths):
    """{path: digest of the content (a huge file: size), or the kind} of everything at and below `paths`."""
    found = {}
    for path in map(Path, paths):
        for entry in [path, *sorted(path.rglob("*"))] if path.is_dir() else [path]:
            if entry.is_symlink():
                found[str(entry)] = "link to " + os.readlink(entry)
            elif entry.is_dir():
                found[str(entry)] = "folder"
            elif entry.is_file():
                size = entry.stat().st_size
                sparse = size > 1 << 30
                found[str(entry)] = size if sparse else hashlib.sha256(entry.read_bytes()).hexdigest()
            elif entry.exists():
                found[str(entry)] = "pipe or device"
    return found


def write_data(path, samples=64, seed=0, **changes):
    """An .npz for MODEL; `changes` replaces arrays by name, or with None leaves one out."""
    random = np.random.default_rng(seed)
    arrays = {"x": random.standard_normal((samples, INPUTS)).astype(np.float32),
              "targets": random.integers(0, CLASSES, samples)} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


class ErrorTest(unittest.TestCase):
    """Runs in a scratch folder of its own that holds data.npz and recipe.toml."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="titan-errors-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        write_data(self.folder / "data.npz")
        (self.folder / "recipe.toml").write_text(RECIPE)

    def run_tool(self, *command, **options):
        return subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True,
                              errors="replace", timeout=60, stdin=subprocess.DEVNULL, **options)

    def succeeds(self, *command, **options):
        done = self.run_tool(*command, **options)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")
        return done

    def refused(self, code, *command, says=(), lines=1, may_change=(), **options):
        """`command` fails as the contract says: exit `code`, one error that holds each of `says`, and in the scratch
        folder nothing differs from before but below the paths `may_change`. `lines` is the most lines of the error."""
        before = tree(self.folder)
        done = self.run_tool(*command, **options)
        said = f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stderr[-3000:]}"
        self.assertEqual(done.returncode, code, said)
        errors = [i for i, line in enumerate(done.stderr.splitlines()) if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, said)
        message = done.stderr.splitlines()[errors[0]:]
        self.assertLessEqual(len(message), lines, said)
        text = "\n".join(message)
        self.assertFalse(text.rstrip().endswith("."), said)
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, text, said)
        allowed = tuple(str(self.folder / path) for path in may_change)
        after = tree(self.folder)
        changed = [path for path in before.keys() | after.keys()
                   if before.get(path) != after.get(path) and not (allowed and path.startswith(allowed))]
        self.assertEqual(changed, [], said)
        if os.environ.get("TITAN_SHOW_ERRORS"):
            print(f"[{self.id().split('.', 1)[-1]}] {code} {text}", file=sys.stderr)
        return text

    def compile_refused(self, *arguments, code=BAD_INPUT, model=MODEL, **options):
        return self.refused(code, COMPILE, model, "--recipe", "recipe.toml", "-o", "job", *arguments, **options)

    def recipe(self, text):
        (self.folder / "recipe.toml").write_text(text)

    @property
    def job(self):
        return compiled_job()

    def train(self, *arguments, **options):
        return self.succeeds(self.job, "train", "--out", "run", "--threads", 1, *arguments, **options)

    def train_refused(self, *arguments, code=BAD_INPUT, **options):
        return self.refused(code, self.job, "train", "--out", "run", "--threads", 1, *arguments, **options)

    @property
    def checkpoint(self):
        """The newest committed checkpoint of the folder `run`."""
        return max((self.folder / "run" / "checkpoints").glob("step-*"))


_jobs = {}


def compiled_job(*options, recipe=RECIPE, model=MODEL):
    """`model` compiled with `recipe` and `options`: once in a process, then shared, never written to."""
    key = (options, recipe, model)
    if key not in _jobs:
        if not _jobs:
            unittest.addModuleCleanup(forget_jobs)
        folder = Path(tempfile.mkdtemp(prefix="titan-job-"))
        (folder / "recipe.toml").write_text(recipe)
        subprocess.run([COMPILE, model, "--recipe", folder / "recipe.toml", "-o", folder / "job", *map(str, options)],
                       check=True, capture_output=True)
        _jobs[key] = folder
    return _jobs[key] / "job"


def forget_jobs():
    while _jobs:
        shutil.rmtree(_jobs.popitem()[1], ignore_errors=True)


def limited_file_size(limit):
    """A preexec_fn: no file grows beyond `limit` bytes, as by ulimit -f."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@contextlib.contextmanager
def small_disk(at, kilobytes, options=""):
    """A file system of its own at `at`; skips the test where mounting is not allowed."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k{options}", "tmpfs", at], capture_output=True)
    if done.returncode != 0:
        raise unittest.SkipTest(f"no permission to mount: {done.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)
