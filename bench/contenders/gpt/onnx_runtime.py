"""ONNX Runtime Training, from the artifacts that prepare.py made.

    onnx_runtime.py FOLDER f32
"""
import sys

import with_onnx_runtime

import problem

folder, precision, row = problem.arguments()
if precision != "f32":
    sys.exit("trains in f32 only")
with_onnx_runtime.serve(problem, folder / "ort", [(ids, targets.reshape(-1)) for ids, targets in problem.batches(folder, row)])
