"""Char, fsdp, f32, two ranks of one thread: how much of what collectives take is hidden behind computing, and that hiding it costs nothing.

    overlap.py [--microbatches 1,4] [--sync deferred,immediate] [--rounds 5] [--save]

A row is a number of microbatches of each rank and a mesh.sync. `off` is a job without the passes that bucket, split and move collectives, `on` one with
them and the default bucket and prefetch. What is hidden is measured with TITAN_COMM_DELAY on buckets of 2 MB: of the delays of all collectives of a step,
half a step together, the part that does not lengthen it. With `off` it should be none. Each figure is of runs of its own, all in turns.
"""
import argparse
import datetime
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import gpt
from side_by_side import add_options, chosen, parse_options, processor, save

import problem
import protocol
import with_titan

BUCKET = "2MB"
PASSES = ("bucket-collectives", "split-collectives", "prefetch-gathers", "overlap-reductions")
JOBS = {"off": [f"--disable-pass=titan-schedule-{name}" for name in PASSES], "on": [], BUCKET: ["--set", f"mesh.bucket={BUCKET}"]}
RUNS = [("off", False), ("on", False), (BUCKET, False), (BUCKET, True), ("off", True)]  # a job, and whether it is delayed
LATENCY = 50e-6  # seconds of each collective; the rate of the wire is what makes the delays half a step
DISCARDED = 2  # steps at the start of a run
COST_LIMIT, HIDDEN_LIMIT = 1.02, 0.75
SYNCS = ("deferred", "immediate")


@dataclass
class Traffic:
    """The collectives of a step of one rank."""
    count: int
    wire: int  # bytes

    def seconds(self, rate):
        """Their delays together, at `rate` bytes a second."""
        return self.count * LATENCY + self.wire / rate

    def rate(self, seconds):
        """Of the wire, for so long delays together."""
        if self.count * LATENCY >= seconds:
            sys.exit(f"bench: {self.count} collectives of {LATENCY * 1e6:.0f} us take longer than half a step, {seconds * 1e3:.1f} ms")
        return self.wire / (seconds - self.count * LATENCY)


def traffic_of(job):
    rows = [row for row in json.loads(with_titan.run([job.path, "plan", "--json"]))["communication"] if row["function"] == "step"]
    return Traffic(sum(row["count"] for row in rows), sum(row["wire"] for row in rows))


def compile_jobs(folder, row, microbatches, sync, tools):
    micro, name = row["batch"] // protocol.RANKS, f"{microbatches}-{sync}"
    recipe = folder / f"train-{name}.toml"
    recipe.write_text(with_titan.recipe(problem, micro, row["batch"] * microbatches, "tokens.bin", "fsdp"))
    return {kind: with_titan.Job(tools, folder / "model.onnx", recipe, folder / f"job-{name}-{kind}", folder / "tokens.bin", "--weights=refer",
                                 "--set", f"mesh.sync={sync}", *options, ranks=protocol.RANKS) for kind, options in JOBS.items()}


def step_seconds(job, steps, rate=None):
    """The median over `steps` of a fresh run, on a wire of `rate` bytes a second."""
    delay = {"TITAN_COMM_DELAY": f"{LATENCY * 1e6:.0f}us,{rate / 1e6:.3f}MB/s"} if rate else {}
    rows = job.first_steps(DISCARDED + steps, **delay)
    return statistics.median(row["seconds"] for row in rows[DISCARDED:])


def measure(folder, row, microbatches, sync, arguments):
    """What is known of a row of the table; seconds of a step by round."""
    print(f"bench: {microbatches} microbatches, {sync}", file=sys.stderr, flush=True)
    jobs = compile_jobs(folder, row, microbatches, sync, arguments.tools.resolve())
    traffic = {kind: traffic_of(job) for kind, job in jobs.items()}
    rate = traffic[BUCKET].rate(step_seconds(jobs[BUCKET], arguments.steps) / 2)
    seconds = {run: [] for run in RUNS}
    for _ in range(arguments.rounds):
        for kind, delayed in RUNS:
            seconds[kind, delayed].append(step_seconds(jobs[kind], arguments.steps, rate if delayed else None))
    return {"microbatches": microbatches, "sync": sync, "seconds": seconds, "traffic": traffic, "rate": rate}


def hidden(result, kind):
    """The part of the delays of a job that does not lengthen its step, the median over rounds."""
    delays = result["traffic"][kind].seconds(result["rate"])
    return statistics.median(1 - (late - soon) / delays for late, soon in zip(result["seconds"][kind, True], result["seconds"][kind, False]))


def columns():
    """{heading: function of what `measure` returned}."""
    def step(*run):
        return lambda r: f"{statistics.median(r['seconds'][run]) * 1e3:.1f}"

    def cost(r):
        return f"{statistics.median(on / off for on, off in zip(r['seconds']['on', False], r['seconds']['off', False])):.3f}"

    return {
        "microbatches, sync": lambda r: f"{r['microbatches']}, {r['sync']}",
        "ms a step, off": step("off", False), "on": step("on", False), f"on / off, wanted: at most {COST_LIMIT}": cost,
        f"buckets of {BUCKET}": step(BUCKET, False), "delayed": step(BUCKET, True),
        "delays": lambda r: f"{r['traffic'][BUCKET].count} x {LATENCY * 1e6:.0f} us + {r['traffic'][BUCKET].wire / 1e6:.1f} MB at {r['rate'] / 1e6:.0f} MB/s",
        "together": lambda r: f"{r['traffic'][BUCKET].seconds(r['rate']) * 1e3:.1f}",
        f"hidden, wanted: at least {HIDDEN_LIMIT}": lambda r: f"{hidden(r, BUCKET):.2f}",
        "off, delayed": step("off", True), "hidden": lambda r: f"{hidden(r, 'off'):.2f}"}


def report(results, arguments):
    cells = columns()
    lines = [f"Char, fsdp, f32, {protocol.RANKS} ranks of one thread; {arguments.rounds} rounds of {arguments.steps} steps, medians",
             f"{processor()[0]}, {datetime.date.today()}", "", "| " + " | ".join(cells) + " |", "|---" * len(cells) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(cell(result) for cell in cells.values()) + " |" for result in results)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--microbatches", default="1,4", help="of each rank (default: 1,4)")
    parser.add_argument("--sync", default=",".join(SYNCS), help=f"of {', '.join(SYNCS)} (default: both)")
    add_options(parser, rounds=5, steps=3)
    arguments = parse_options(parser, microbatches="1")
    syncs, microbatches = chosen(parser, arguments.sync, SYNCS), [int(word) for word in arguments.microbatches.split(",")]
    with tempfile.TemporaryDirectory(prefix="titan-bench-") as temporary:
        row = gpt.prepare(Path(temporary), "char")
        if not row:
            return 1
        text = report([measure(Path(temporary), row, *pair, arguments) for pair in product(microbatches, syncs)], arguments)
    print(text, end="")
    if arguments.save:
        save("overlap", text, "-overlap")
    return 0


if __name__ == "__main__":
    sys.exit(main())
