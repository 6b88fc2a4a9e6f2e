"""Titan, from an ONNX export that refers to the weights beside it; a measurement is a run that is killed when it has done enough.

    titan.py FOLDER f32|bf16 TOOLS       TOOLS: the folder of titan-compile

The seconds of a step are those of the run's own metrics.jsonl, which are taken from the end of one step to the end of the next: the loader, the
log and the loss read back are inside.
"""
import sys
from pathlib import Path

import with_titan

import problem

folder, precision, row = problem.arguments()
tools = Path(sys.argv[3]).resolve()
recipe = folder / f"train-{precision}.toml"
recipe.write_text(with_titan.recipe(problem, row["batch"], "tokens.bin"))
with_titan.serve(problem, tools, [folder / "model.onnx", recipe, folder / f"job-{precision}", folder / "tokens.bin", "--weights=refer",
                                  "--set", f"precision.compute={precision}"], bound=True)
