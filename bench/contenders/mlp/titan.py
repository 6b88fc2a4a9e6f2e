"""Titan, from the export that prepare.py made or from a model that it knows by name; a measurement is a run that is killed when it has done enough.

    titan.py FOLDER TOOLS       TOOLS: the folder of titan-compile

The seconds of a step are those of the run's own metrics.jsonl, which are taken from the end of one step to the end of the next: the loader, the
log and the loss read back are inside.
"""
import sys
from pathlib import Path

import with_titan

import problem

folder, tools = problem.folder(), Path(sys.argv[2]).resolve()
recipe = folder / "train.toml"
recipe.write_text(with_titan.recipe(problem, problem.BATCH, problem.BATCH, "data.npz"))
model, *options = with_titan.model_of(folder)
with_titan.serve(problem, tools, [model, recipe, folder / "job", folder / "data.npz", *options])
