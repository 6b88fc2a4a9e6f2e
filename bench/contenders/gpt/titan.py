"""Titan: a job compiled from an ONNX export, which refers to the weights beside it; a measurement is a run of its command `train` that is killed when it has done enough.

    titan.py FOLDER f32|bf16 TOOLS       TOOLS: the folder of titan-compile

The seconds of a step are those of the run's own metrics.jsonl, which are taken from the end of one step to the end of the next: the loader, the
log and the loss read back are inside.
"""
import json
import subprocess
import sys
import time
from pathlib import Path

import protocol

protocol.limit_threads()
import problem

folder, precision, row = problem.arguments()
tools = Path(sys.argv[3]).resolve()
recipe, job = folder / "train.toml", folder / f"job-{precision}"
recipe.write_text(f"""\
[optimizer]
kind = "adamw"
lr = {problem.LEARNING_RATE}
betas = {list(problem.BETAS)}
eps = {problem.EPSILON}
weight_decay = {problem.WEIGHT_DECAY}
no_decay = []
[batch]
micro = {row["batch"]}
global = {row["batch"]}
[data]
train = "tokens.bin"
shuffle = false
[train]
steps = 1000000
""")
runs = 0
peak = 0


def run_job(steps):
    """The rows of metrics.jsonl of a fresh run's first `steps` steps. The run is killed then: it has nothing to save."""
    global runs, peak
    runs += 1
    out = folder / f"run-{precision}-{runs}"
    command = [job, "train", "--out", out, "--data", folder / "tokens.bin", "--threads", str(protocol.THREADS)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    metrics = out / "metrics.jsonl"
    try:
        while process.poll() is None:
            peak = max(peak, protocol.peak_bytes(process.pid))
            if metrics.exists() and metrics.read_bytes().count(b"\n") >= steps:
                break
            time.sleep(0.01)
        else:
            sys.exit(process.stderr.read().strip().splitlines()[-1])
    finally:
        process.kill()
        process.wait()
    return [json.loads(line) for line in metrics.read_text().splitlines()[:steps]]


started = time.perf_counter()
subprocess.run([tools / "titan-compile", folder / "model.onnx", "--recipe", recipe, "-o", job, "--weights=refer",
                "--set", f"precision.compute={precision}"], check=True)
compiled = time.perf_counter() - started
first = run_job(1)
first_step = time.perf_counter() - started
losses = [line["loss"] for line in run_job(problem.CHECKED)]


def machine_limits():
    """The speeds of products and of copying, as `profile` measures them."""
    said = json.loads(subprocess.run(
        [job, "profile", "--steps", "1", "--json", "--trace", folder / "trace.json", "--threads", str(protocol.THREADS),
         "--data", folder / "tokens.bin"], check=True, capture_output=True, text=True).stdout)
    return said["gemm_ceiling_flops"], said["copy_bytes_per_second"]["memory"]


# A limit is what was reached once: the better of two, in case something disturbs the machine.
ceiling, copying = map(max, zip(machine_limits(), machine_limits()))
# "titan-compile 0.1.0 (LLVM 22.1.8)"
version = subprocess.run([tools / "titan-compile", "--version"], capture_output=True, text=True).stdout.split()
protocol.ready({"version": version[1] if len(version) > 1 else "", "first_step": first_step, "compile": compiled, "losses": losses,
                "gemm_ceiling_flops": ceiling, "copy_bytes_per_second": copying})
for count in protocol.requests():
    rows = run_job(problem.CHECKED + problem.WARM_UP + count)
    print(sum(line["seconds"] for line in rows[-count:]), peak, flush=True)
