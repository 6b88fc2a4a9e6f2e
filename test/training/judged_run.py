"""One export, imported, compiled and trained by Titan, beside what PyTorch made of the same model (account.py judges). Needs numpy only."""
import json
import subprocess

import numpy as np

import titan_job
from account import Run, judge

SECONDS = 900  # for a hang: a busy machine is slow


class Verdict:
    """What came of one export, with the reasons. `kind`: ok; explained (the account has every difference); refused (by Titan), not exported (by
    PyTorch), diverges (in PyTorch); wrong."""

    def __init__(self, kind, lines=()):
        self.kind, self.lines = kind, list(lines)


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout, done.stderr


def judged_run(tools, model, recipe, data, export, source, scratch, cache=None):
    """`model`, `recipe`, `data`: paths; the recipe keeps a checkpoint of each step. `export`, `source`: as account.judge takes them. The job and its
    run lie in `scratch`. `cache`: a folder of compiled kernels."""
    compile_model = [tools / "titan-compile", model, "--recipe", recipe]
    code, printed, said = run([*compile_model, "--check", "--json"])
    if code not in (0, 1):
        return Verdict("wrong", [f"titan-compile --check ends with {code}", *said.splitlines()[-3:]])
    checked = json.loads(printed) if printed else {}
    code, _, said = run([*compile_model, "-o", scratch / "job", *(["--cache", cache] if cache else [])])
    if code not in (0, 1):
        return Verdict("wrong", [f"titan-compile ends with {code}", *said.splitlines()[-3:]])
    if code == 1:
        return Verdict("refused", said.splitlines()[-2:])
    code, _, failed = run([scratch / "job", "train", "--out", scratch / "run", "--data", data, "--threads", 1])
    if code != 0:
        return Verdict("wrong", [f"the job ends with {code}", *failed.splitlines()[-3:]])
    losses = titan_job.losses_of(scratch / "run")
    trained = Run(losses, titan_job.checkpoint(scratch / "run", 1), titan_job.checkpoint(scratch / "run", len(source.losses)))
    found = judge(checked, export, trained, source)
    if found.silent:
        return Verdict("wrong", [f"silent: {line}" for line in found.silent] + [line for line in said.splitlines() if "note:" in line])
    return Verdict("explained" if found.explained else "ok", found.explained)


def states_to_arrays(states):
    """One flat {key: array} of the three states of a Source, to be saved."""
    return {f"{step} {name}": value for step, state in enumerate(states) for name, value in state.items()}


def arrays_to_states(arrays):
    return [{key[2:]: np.asarray(arrays[key]) for key in arrays if key.startswith(f"{step} ")} for step in range(3)]
