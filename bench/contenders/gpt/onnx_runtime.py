"""ONNX Runtime Training (discontinued; 1.19.2 is the last), from the artifacts that prepare.py made.

    onnx_runtime.py FOLDER f32
"""
import itertools
import sys

import protocol

protocol.limit_threads()
import onnxruntime
from onnxruntime.training import api

import problem

folder, precision, row = problem.arguments()
if precision != "f32":
    sys.exit("trains in f32 only")
artifacts = folder / "ort"
if not artifacts.is_dir():
    sys.exit("there are no artifacts: prepare.py said why")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = protocol.THREADS
state = api.CheckpointState.load_checkpoint(str(artifacts / "checkpoint"))
module = api.Module(str(artifacts / "training_model.onnx"), state, str(artifacts / "eval_model.onnx"), session_options=options)
optimizer = api.Optimizer(str(artifacts / "optimizer_model.onnx"), module)
optimizer.set_learning_rate(problem.LEARNING_RATE)
module.train()
ids, targets = problem.batches(folder, row)
data = itertools.cycle(list(zip(ids, targets.reshape(len(targets), -1))))


def train(steps):
    for x, y in itertools.islice(data, steps):
        loss = module(x, y)
        optimizer.step()
        module.lazy_reset_grad()
    return float(loss)


protocol.serve(train, onnxruntime.__version__, problem.WARM_UP, problem.CHECKED)
