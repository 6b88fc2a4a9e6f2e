"""Titan, from an ONNX export that refers to the weights beside it, or from a model that it knows by name.

    titan.py FOLDER ROW f32|bf16 TOOLS       TOOLS: the folder of titan-compile and titan-run
"""
import sys
from pathlib import Path

import with_titan

import problem

folder, name, precision = problem.arguments()
batch = problem.ROWS[name].batch
recipe = folder / f"train-{precision}.toml"
recipe.write_text(with_titan.recipe(problem, batch, batch, "data.npz"))
model, *options = with_titan.model_of(folder, "--weights=refer")
with_titan.serve(problem, Path(sys.argv[4]).resolve(), [model, recipe, folder / f"job-{precision}", folder / "data.npz", *options,
                                                        "--set", f"precision.compute={precision}"], bound=True)
