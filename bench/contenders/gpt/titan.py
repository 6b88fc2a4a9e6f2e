"""Titan, from an ONNX export that refers to the weights beside it, or from a model that it knows by name; a measurement is a run that is killed
when it has done enough.

    titan.py FOLDER f32|bf16 TOOLS [ddp|fsdp]       TOOLS: the folder of titan-compile and titan-run

The seconds of a step are those of the run's own metrics.jsonl, which are taken from the end of one step to the end of the next: the loader, the
log and the loss read back are inside.
"""
import sys
from pathlib import Path

import protocol
import with_titan

import problem

folder, precision, row = problem.arguments()
tools, strategy = Path(sys.argv[3]).resolve(), (sys.argv[4:] or [None])[0]
ranks = protocol.RANKS if strategy else 1
name = f"{strategy or 'alone'}-{precision}"
recipe = folder / f"train-{name}.toml"
recipe.write_text(with_titan.recipe(problem, row["batch"] // ranks, row["batch"], "tokens.bin", strategy))
model, *options = with_titan.model_of(folder, "--weights=refer")
with_titan.serve(problem, tools, [model, recipe, folder / f"job-{name}", folder / "tokens.bin", *options,
                                  "--set", f"precision.compute={precision}"], bound=not strategy, ranks=ranks)
