"""Saves beside the steps: what a run waits for, what they cost in all, how fast they write, beside PyTorch's async_save of the same state.

    checkpoint.py [--rows char,gpt2-64] [--rounds 5] [--saves 8] [--only titan,torch] [--save]

M is the state's bytes by the speed of a large copy on two threads, measured in turns with the runs. A round is a run without saves and one with each
kind of them, `--saves` saves each. `stall` is all that the run waits for, gates of later steps included; the price adds what the thread that saves
takes of the CPUs on which the steps run. It is estimated twice. From runs: the difference of two runs side by side, by the number of saves; this misses
nothing, and has the noise of all their steps. From steps: how much longer the steps beside a save take than the median of the same run's others, and
the stall; this misses what a save leaves behind, and has the noise of its own steps alone. Written: the bytes of a save by the time from its begin to
its commit, beside `dd bs=16M conv=fdatasync` of as many bytes. Where the steps have all CPUs, the thread that saves gets what they leave: how fast it
can write, and what steps notice of it then, is measured in runs of one thread, which leave a CPU to it.

Averages: what the optimizer's kernels take of a job with one profile beside one without, as both profile it. They read and write 8 bytes an element.
"""
import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import gpt
from side_by_side import Contender, Failure, add_options, add_rows, chosen, parse_options, processor, save

import problem
import protocol
import with_titan
import numpy as np

ROWS = {"char": 3, "gpt2-64": 8}  # steps from a save to the next: it is done by then
DISCARDED = 2  # steps at the start of a run


@dataclass
class Kind:
    staging: str | None  # checkpoint.staging; None: no saves
    threads: int = protocol.THREADS


KINDS = {"no saves": Kind(None), "full": Kind("full"), "none": Kind("none"), "spare": Kind("full", threads=1)}


@dataclass
class Measured:
    """Of one kind of runs: a list entry for each save, or for each run."""
    stalls: list = field(default_factory=list)
    firsts: list = field(default_factory=list)  # of each run: the stall of its first save
    writes: list = field(default_factory=list)
    cpus: list = field(default_factory=list)
    quiet: list = field(default_factory=list)  # seconds of steps while nothing is written
    busy: list = field(default_factory=list)  # while a save is written
    excesses: list = field(default_factory=list)  # of each save: seconds that the steps beside it take more than the run's others
    totals: list = field(default_factory=list)  # of each run: seconds of all steps, and what stood between them
    peak: int = 0
    bytes: int = 0

    def add(self, rows, peak):
        saves = [row for row in rows if "stall" in row]
        steps = {row["step"]: row["seconds"] for row in rows if "loss" in row and row["step"] > DISCARDED}
        written = {step for row in saves for step in range(row["step"] + 1, row["committed_after_step"] + 1)}
        self.stalls += [row["stall"] for row in saves]
        self.firsts += [row["stall"] for row in saves[:1]]
        self.writes += [row["write"] for row in saves]
        self.cpus += [row["cpu"] for row in saves]
        quiet = [seconds for step, seconds in steps.items() if step not in written]
        self.quiet += quiet
        self.busy += [seconds for step, seconds in steps.items() if step in written]
        self.excesses += [excess(row, steps, statistics.median(quiet)) if quiet else None for row in saves]
        self.totals.append(sum(steps.values()))
        self.bytes = max([self.bytes, *(row["bytes"] for row in saves)])
        self.peak = max(self.peak, peak)


def excess(row, steps, usual):
    """Of the save of `row`: what the steps beside it, {step: seconds}, take more than `usual` each."""
    return sum(steps[step] - usual for step in range(row["step"] + 1, row["committed_after_step"] + 1) if step in steps)


def copy_seconds(bytes_):
    """Of so many bytes, once, by two threads."""
    source, target = (np.ones(bytes_ // 8 // 2 * 2) for _ in range(2))
    half = len(source) // 2
    best = []
    for _ in range(3):
        threads = [threading.Thread(target=np.copyto, args=(target[part], source[part])) for part in (slice(half), slice(half, None))]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best.append(time.perf_counter() - began)
    return min(best)


def dd_seconds(folder, bytes_):
    path = folder / "dd"
    began = time.perf_counter()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=16M", f"count={bytes_}", "iflag=count_bytes", "conv=fdatasync"], check=True,
                   stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    path.unlink()
    return seconds


def run_job(job, every, saves, kind):
    """The rows of a run's metrics, and its peak memory. Its last save is not one of those that are measured: it ends the run."""
    settings = ["--steps", str(DISCARDED + every * saves + every - 1)]
    if kind.staging:
        settings += ["--set", f"checkpoint.every={every}", "--set", "checkpoint.keep=1", "--set", f"checkpoint.staging={kind.staging}"]
    command, out = job.train_command(*settings, threads=kind.threads)
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, protocol.peak_bytes(process.pid))
        time.sleep(0.02)
    if process.returncode != 0:
        sys.exit(process.stderr.read().strip().splitlines()[-1])
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    subprocess.run(["rm", "-rf", out], check=True)
    last = max(row["step"] for row in rows)
    return [row for row in rows if "stall" not in row or row["step"] != last], peak


def seconds_of(job, group, steps=3):
    """Of a group of kernels, a step."""
    return next(each["seconds_per_step"] for each in job.profile(steps)["groups"] if each["name"] == group)


def measure(name, arguments):
    with tempfile.TemporaryDirectory(prefix="titan-bench-", dir=arguments.folder) as temporary:
        folder = Path(temporary)
        row = gpt.prepare(folder, name)
        if not row:
            return None
        recipe = folder / "train.toml"
        recipe.write_text(with_titan.recipe(problem, row["batch"], row["batch"], "tokens.bin"))
        files = folder / "model.onnx", recipe, folder / "job", folder / "tokens.bin"
        job = with_titan.Job(arguments.tools.resolve(), *files, "--weights=refer")
        averaging = with_titan.Job(arguments.tools.resolve(), *files[:2], folder / "averaging", files[3], "--weights=refer", "--set",
                                   "ema.profiles={ slow = 0.999 }")
        plan, averages = (json.loads(with_titan.run([path, "plan", "--json", "--set", f"checkpoint.every={ROWS[name]}"])) for path in (job.path, averaging.path))
        state, bound = plan["memory"]["state"]["total"], plan["memory"]["high_water"] + plan["memory"]["outside"]["bound"]
        result = {"row": name, "state": state, "bound": bound, "copies": [], "dds": [], "kinds": {kind: Measured() for kind in KINDS}, "torch": {},
                  "optimizer": [], "averaging": [], "averages_bytes": averages["memory"]["state"]["total"] - state}
        peer = None
        if "torch" in arguments.only:
            try:
                peer = Contender("torch", ["gpt/pytorch_saves.py", folder, "f32", ROWS[name]])
            except Failure as failure:
                result["torch"] = {"failure": str(failure)}
        for number in range(arguments.rounds):
            print(f"bench: {name}, round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
            result["copies"].append(copy_seconds(state))
            result["dds"].append(dd_seconds(folder, state))
            for label, kind in KINDS.items():
                result["kinds"][label].add(*run_job(job, ROWS[name], arguments.saves, kind))
            for key, profiled in (("optimizer", job), ("averaging", averaging)):
                result[key].append(seconds_of(profiled, "optimizer"))
            if peer:
                try:
                    peer.measure(arguments.saves)
                    for key, values in peer.last.items():
                        result["torch"].setdefault(key, []).extend(values if isinstance(values, list) else [values])
                except Failure as failure:
                    result["torch"], peer = {"failure": str(failure)}, None
        if peer:
            peer.close()
        return result


def worst_but_one(values):
    return sorted(values)[-2] if len(values) > 1 else values[0]


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def percent(ratio):
    return f"{100 * (ratio - 1):+.1f} %"


def beside_a_save(found):
    """What a step takes more while a save is written than the steps of the same runs beside none."""
    if not found.busy or not found.quiet:
        return "not measured: " + ("a save at each step" if found.busy else "no step while it writes")
    return percent(statistics.median(found.busy) / statistics.median(found.quiet))


def lines_of(result, saves):
    """Markdown of one row: what was measured, and what is wanted."""
    median = statistics.median
    m, dd, quiet = median(result["copies"]), median(result["dds"]), result["kinds"]["no saves"]
    cells = [("M, a copy of the state", milliseconds(m), ""), ("a step without saves", milliseconds(median(quiet.quiet)), "")]
    for kind in ("full", "none"):
        found = result["kinds"][kind]
        gigabytes = found.bytes / 1e9
        # Of full staging nothing that the run waits for is a part of a step.
        between = found.stalls if kind == "full" else [0] * len(found.stalls)
        of_runs = [(total - base + sum(between) / len(found.totals)) / saves for total, base in zip(found.totals, quiet.totals)]
        of_steps = [stall + more for stall, more in zip(between, found.excesses) if more is not None]
        cpu = median(found.cpus)
        wanted = f"≤ {milliseconds(median(found.stalls) + 1.25 * cpu + 10e-3)}"
        cells += [
            (f"staging {kind}: stall, median", milliseconds(median(found.stalls)), f"≤ {milliseconds(1.10 * m + 5e-3)}" if kind == "full" else ""),
            ("… worst but one", milliseconds(worst_but_one(found.stalls)), f"≤ {milliseconds(1.25 * m + 10e-3)}" if kind == "full" else ""),
            ("… of the first save", milliseconds(median(found.firsts)), f"≤ {milliseconds(1.2 * median(found.stalls))}" if kind == "full" else ""),
            ("… whole price of a save, from runs, median", milliseconds(median(of_runs)), wanted),
            ("… from steps beside it and its stall, median", milliseconds(median(of_steps)) if of_steps else "not measured: a save at each step", wanted),
            ("… CPU seconds of the writer a GB", f"{cpu / gigabytes:.2f}", "≤ 0.40"),
            ("… steps while it writes, median", beside_a_save(found), ""),
            ("… written", f"{gigabytes / median(found.writes):.2f} GB/s", ""),
            ("… peak memory", f"{found.peak / 1e9:.2f} GB", f"≤ {result['bound'] / 1e9:.2f} GB" if kind == "full" else "")]
    spare = result["kinds"]["spare"]
    usual = median(spare.quiet)
    cells += [
        ("staging full, a CPU spare: stall, median", milliseconds(median(spare.stalls)), ""),
        ("… a step beside no save", milliseconds(usual), ""),
        ("… steps while it writes, median", beside_a_save(spare), "≤ +2 %"),
        ("… worst but one", percent(worst_but_one(spare.busy) / usual), "≤ +10 %"),
        ("… worst but one of the steps beside no save", percent(worst_but_one(spare.quiet) / usual), ""),
        ("… CPU seconds of the writer a GB", f"{median(spare.cpus) / spare.bytes * 1e9:.2f}", "≤ 0.40"),
        ("… written", f"{spare.bytes / 1e9 / median(spare.writes):.2f} GB/s", f"≥ {0.8 * result['state'] / 1e9 / dd:.2f} GB/s (80 % of dd)")]
    wanted = 1.15 * 2 * result["averages_bytes"] / result["state"] * m
    cells.append(("averages, one profile: a step takes more by", milliseconds(median(result["averaging"]) - median(result["optimizer"])), f"≤ {milliseconds(wanted)}"))
    cells.append(("no saves: peak memory", f"{quiet.peak / 1e9:.2f} GB", ""))
    torch = result["torch"]
    if "failure" in torch:
        cells.append(("torch.distributed.checkpoint.async_save", f"not measured: {torch['failure']}", ""))
    elif torch:
        cells += [(f"torch {torch['version'][0]} async_save: stall, median", milliseconds(median(torch["stalls"])), ""),
                  ("… worst but one", milliseconds(worst_but_one(torch["stalls"])), ""),
                  ("… of the first save", milliseconds(torch["stalls"][0]), ""),
                  ("… whole price of a save, from runs, median", milliseconds(median(torch["prices"])), ""),
                  ("… from begin to end", milliseconds(median(torch["writes"])), ""),
                  ("… a step without saves", milliseconds(median(torch["steps"])), "")]
    return [f"### {result['row']}, f32: {result['state'] / 1e9:.2f} GB of state, a save each {ROWS[result['row']]} steps, {len(result['kinds']['full'].stalls)} "
            "saves of each kind", "", "| | measured | wanted |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in cells), ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_rows(parser, ROWS)
    parser.add_argument("--saves", type=int, default=8, help="of a run (default: 8)")
    parser.add_argument("--only", default="titan,torch", help="titan, or titan,torch (default)")
    parser.add_argument("--folder", type=Path, help="where to write (default: the system's for temporary files)")
    add_options(parser, rounds=5, steps=0)
    arguments = parse_options(parser, rows="char", saves=3)
    text = f"Saves beside the steps, two threads; {arguments.rounds} rounds of {arguments.saves} saves\n{processor()[0]}, {datetime.date.today()}\n"
    print(text)
    for name in chosen(parser, arguments.rows, ROWS):
        result = measure(name, arguments)
        if not result:
            return 1
        lines = "\n".join(lines_of(result, arguments.saves)) + "\n"
        print(lines, flush=True)
        text += "\n" + lines
        if arguments.save:
            save("checkpoint", text, "-checkpoint")
    return 0


if __name__ == "__main__":
    sys.exit(main())
