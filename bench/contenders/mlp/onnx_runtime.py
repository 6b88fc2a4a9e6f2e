"""ONNX Runtime Training (discontinued; 1.19.2 is the last): training artifacts from an opset-15 export."""
import io
import itertools
import tempfile
import warnings
from pathlib import Path

import protocol

protocol.limit_threads()
warnings.simplefilter("ignore")
import onnx
import onnxruntime
import torch
from onnxruntime.training import api, artifacts
from torch import nn

import problem

model = nn.Sequential(nn.Linear(problem.FEATURES, problem.HIDDEN), nn.ReLU(), nn.Linear(problem.HIDDEN, problem.CLASSES))
exported = io.BytesIO()
torch.onnx.export(model, (torch.zeros(problem.BATCH, problem.FEATURES),), exported, dynamo=False, opset_version=15,
                  training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                  input_names=["x"], output_names=["logits"])
folder = Path(tempfile.mkdtemp())
artifacts.generate_artifacts(onnx.load_from_string(exported.getvalue()), artifact_directory=str(folder),
                             requires_grad=[name for name, _ in model.named_parameters()],
                             loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.AdamW)
for path in folder.glob("*.onnx"):  # the runtime is older than the onnx package, and refuses its version stamp
    artifact = onnx.load(path)
    artifact.ir_version = 9
    onnx.save(artifact, path)

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = protocol.THREADS
state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
module = api.Module(str(folder / "training_model.onnx"), state, str(folder / "eval_model.onnx"), session_options=options)
optimizer = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
optimizer.set_learning_rate(problem.LEARNING_RATE)
module.train()
data = itertools.cycle(list(zip(*problem.batches())))


def train(steps):
    for x, y in itertools.islice(data, steps):
        loss = module(x, y)
        optimizer.step()
        module.lazy_reset_grad()
    return float(loss)


protocol.serve(train, onnxruntime.__version__, problem.WARM_UP)
