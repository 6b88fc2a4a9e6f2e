"""Titan, from an ONNX export that refers to the weights beside it.

    titan.py FOLDER ROW f32|bf16 TOOLS       TOOLS: the folder of titan-compile and titan-run
"""
import sys
from pathlib import Path

import with_titan

import problem
from models import ROWS

folder, name, precision = problem.arguments()
batch = ROWS[name].batch
recipe = folder / f"train-{precision}.toml"
recipe.write_text(with_titan.recipe(problem, batch, batch, "data.npz"))
with_titan.serve(problem, Path(sys.argv[4]).resolve(), [folder / "model.onnx", recipe, folder / f"job-{precision}", folder / "data.npz", "--weights=refer",
                                                        "--set", f"precision.compute={precision}"], bound=True)
