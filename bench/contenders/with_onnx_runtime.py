"""Training with ONNX Runtime Training (discontinued; 1.19.2 is the last): training artifacts from an opset-15 export."""
import io
import itertools
import sys

import protocol

protocol.limit_threads()


def prepare(problem, model, sample, names, folder):
    """Training artifacts of a PyTorch model whose one input is `sample`, into the new `folder`; `names` are those of input and output. Or
    failure.txt, why not: whatever a discontinued tool raises, or the memory that it takes, the other contenders go on."""
    folder.mkdir()
    failure = folder / "failure.txt"
    failure.write_text("making them was killed")
    try:
        write_artifacts(problem, model, sample, names, folder)
        failure.unlink()
    except Exception as error:
        failure.write_text(f"{type(error).__name__}: {error}".strip().splitlines()[-1])


def write_artifacts(problem, model, sample, names, folder):
    import onnx
    import torch
    from onnxruntime.training import artifacts, onnxblock

    exported = io.BytesIO()
    torch.onnx.export(model, (sample,), exported, dynamo=False, opset_version=15, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING, input_names=names[:1], output_names=names[1:])
    graph = onnx.load_from_string(exported.getvalue())
    trained = {name for name, _ in model.named_parameters()} & {tensor.name for tensor in graph.graph.initializer}
    artifacts.generate_artifacts(
        graph, artifact_directory=str(folder), requires_grad=sorted(trained), loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=onnxblock.optim.AdamW(betas=problem.BETAS, eps=problem.EPSILON, weight_decay=problem.WEIGHT_DECAY))
    for path in folder.glob("*.onnx"):  # the runtime is older than the onnx package, and refuses its version stamp
        artifact = onnx.load(path)
        artifact.ir_version = 9
        onnx.save(artifact, path)


def serve(problem, folder, batches):
    """Trains the artifacts in `folder`; `batches`: pairs of NumPy arrays, used in turn."""
    if (folder / "failure.txt").exists():
        sys.exit("no training artifacts: " + (folder / "failure.txt").read_text())
    import onnxruntime
    from onnxruntime.training import api

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = protocol.THREADS
    state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = api.Module(str(folder / "training_model.onnx"), state, str(folder / "eval_model.onnx"), session_options=options)
    optimizer = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
    optimizer.set_learning_rate(problem.LEARNING_RATE)
    module.train()
    data = itertools.cycle(batches)

    def train(steps):
        for x, y in itertools.islice(data, steps):
            loss = module(x, y)
            optimizer.step()
            module.lazy_reset_grad()
        return float(loss)

    protocol.serve(problem, onnxruntime.__version__, train)
