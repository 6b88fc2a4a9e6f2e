"""Titan, from an ONNX export that refers to the weights beside it; a measurement is a run that is killed when it has done enough.

    titan.py FOLDER f32|bf16 TOOLS       TOOLS: the folder of titan-compile

The seconds of a step are those of the run's own metrics.jsonl, which are taken from the end of one step to the end of the next: the loader, the
log and the loss read back are inside.
"""
import sys
import time
from pathlib import Path

import protocol
import with_titan

import problem

folder, precision, row = problem.arguments()
tools = Path(sys.argv[3]).resolve()
recipe = folder / f"train-{precision}.toml"
recipe.write_text(with_titan.recipe(problem, row["batch"], "tokens.bin"))

started = time.perf_counter()
job = with_titan.Job(tools, folder / "model.onnx", recipe, folder / f"job-{precision}", folder / "tokens.bin", "--weights=refer",
                     "--set", f"precision.compute={precision}")
compiled = time.perf_counter() - started
job.first_steps(1)
first_step = time.perf_counter() - started
losses = [line["loss"] for line in job.first_steps(problem.CHECKED)]
ceiling, copying = job.machine_limits()


def measure(steps):
    rows = job.first_steps(problem.CHECKED + problem.WARM_UP + steps)
    return {"seconds": sum(line["seconds"] for line in rows[-steps:]), "peak_bytes": job.peak}


protocol.answer_requests({"version": with_titan.version(tools), "first_step": first_step, "compile": compiled, "losses": losses,
                          "gemm_ceiling_flops": ceiling, "copy_bytes_per_second": copying}, measure)
