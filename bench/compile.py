"""Compiling models that titan-compile knows by name: what a compilation takes, with an empty and with a full cache of kernels, and what its job plans.

    compile.py [--rows gpt-2,gpt-48,llama-8b] [--target cpu|cuda] [--rounds 5] [--against OLD/bin] [--save]

Nothing is trained, and no model is in a file: a model that is larger than the machine has its row. Each round compiles a row twice, into a cache of
kernels that is empty and then full. Builds take turns.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from side_by_side import Failure, add_options, add_rows, chosen, of_other_build, parse_options, processor, save, table

GPT = "nn:gpt?layers={},width=384,heads=6,vocab=256,length=256"
LONG = ["--set", "model.dims.seq=2048", "--set", "batch.micro=1", "--set", "precision.compute=bf16"]
ROWS = {  # the model, and options beside the recipe that --write-recipe writes
    "gpt-2": (GPT.format(2), []), "gpt-12": (GPT.format(12), []), "gpt-48": (GPT.format(48), []),
    "gpt2-124m": ("nn:gpt?layers=12,width=768,heads=12,vocab=50257,length=1024", []),
    "llama-1b": ("nn:llama", LONG),
    "llama-8b": ("nn:llama?layers=32,width=4096,heads=32,groups=8,hidden=14336,vocab=128256,tied=false", LONG)}


def said(command):
    """The standard output of a command, or a Failure with its last word."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure((done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1])
    return done.stdout


def measured(command):
    """Seconds, CPU seconds and the largest resident set of a command, in bytes."""
    with tempfile.TemporaryFile("w+") as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if status != 0:
            raise Failure((errors.read().strip().splitlines() or [f"exit {process.returncode}"])[-1])
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}


class Compiler:
    """One build and one row: what its compilations took, `empty` and `full` by the state of the cache, and the plan of its job."""

    def __init__(self, name, tools, row, target, folder):
        model, options = ROWS[row]
        self.name, self.version, self.empty, self.full = name, f"`{model}`", [], []
        folder.mkdir()
        recipe = folder / "train.toml"
        recipe.write_text(said([tools / "titan-compile", "--write-recipe", model]))
        self.job, self.folder = folder / "job", folder
        self.command = [tools / "titan-compile", model, "--recipe", recipe, "--target", target, *options, "-o", self.job]

    def measure(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:
            self.empty.append(measured([*self.command, "--cache", cache]))
            self.full.append(measured([*self.command, "--cache", cache]))

    def result(self):
        return {"name": self.name, "version": self.version, "empty": self.empty, "full": self.full,
                "plan": json.loads(said([self.job, "plan", "--json"]))}


def median(key, measurements):
    return statistics.median(measurement[key] for measurement in measurements)


def lowest(key, measurements):
    return min(measurement[key] for measurement in measurements)


COLUMNS = {
    "s, cache empty": lambda r: f"{median('seconds', r['empty']):.2f}",
    "full": lambda r: f"{median('seconds', r['full']):.2f}",
    "lowest": lambda r: f"{lowest('seconds', r['full']):.2f}",
    "CPU s, full": lambda r: f"{median('cpu', r['full']):.2f}",
    "lowest of these": lambda r: f"{lowest('cpu', r['full']):.2f}",
    "peak memory": lambda r: f"{max(m['peak'] for m in r['empty'] + r['full']) / 1e6:.0f} MB",
    "kernels": lambda r: f"{r['plan']['kernels']}",
    "commands of a step": lambda r: f"{r['plan']['functions']['step']['commands']}",
    "state": lambda r: f"{r['plan']['memory']['state']['total'] / 1e9:.2f} GB",
    "arena": lambda r: f"{r['plan']['memory']['arena'] / 1e9:.2f} GB",
    "GFLOP a step": lambda r: f"{r['plan']['functions']['step']['model_flops'] / 1e9:.0f}"}


def run_row(row, arguments, folder):
    """Its results, and {name: why not}."""
    builds = ({of_other_build(row): arguments.against} if arguments.against else {}) | {row: arguments.tools}
    compilers, failures = [], {}
    for number, (name, tools) in enumerate(builds.items()):
        try:
            compilers.append(Compiler(name, tools.resolve(), row, arguments.target, folder / str(number)))
        except Failure as failure:
            failures[name] = str(failure)
    for _ in range(arguments.rounds):
        for compiler in [c for c in compilers if c.name not in failures]:
            try:
                compiler.measure()
            except Failure as failure:
                failures[compiler.name] = str(failure)
    return [compiler.result() for compiler in compilers if compiler.name not in failures], failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_rows(parser, ROWS)
    add_options(parser, rounds=5, steps=0)
    parser.add_argument("--target", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--against", type=Path, help="the tools of another build, measured in turns with it")
    arguments = parse_options(parser, rows="gpt-2,gpt-48,gpt2-124m")
    head = f"Compilations for {arguments.target}; {arguments.rounds} rounds\n{processor()[0]}, {datetime.date.today()}\n"
    results, failures = [], {}
    for row in chosen(parser, arguments.rows, ROWS):
        print(f"bench: compiling {row}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="titan-bench-") as folder:
            found, failed = run_row(row, arguments, Path(folder))
        results += found
        failures |= failed
    text = "\n".join([head, *table(results, failures, COLUMNS)]) + "\n"
    print(text, end="")
    if arguments.save:
        save("compile", text, "-compile-times")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
