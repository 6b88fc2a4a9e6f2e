"""ONNX Runtime Training, from the artifacts that prepare.py made: onnx_runtime.py FOLDER"""
import with_onnx_runtime

import problem

with_onnx_runtime.serve(problem, problem.folder() / "ort", problem.batches())
