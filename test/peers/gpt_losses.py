"""The GPTs of gpt_zoo.py, exported in many ways, trained by PyTorch and by Titan on the same data from the same weights.

    test/peers/run-with-peers test/peers/gpt_losses.py --tools build/dev/bin [--exports DIR] [--models G] [--ways G] [--quick] [--every N]

Twenty steps each, SGD with momentum or AdamW with clipping by turns, two microbatches; the losses agree as compare.py
says. Dropout is off: exports that have it are left out. --every N takes each N-th export.
"""
import copy
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import torch

import export_gpt
import gpt_zoo

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
import titan_job
from compare import compare_losses
from torch_training import train
from verdict import failed

OPTIMIZERS = [
    'kind = "adamw"\nlr = 2e-3\nweight_decay = 0.05\nclip_norm = 1.0\n',
    'kind = "sgd"\nlr = 0.05\nmomentum = 0.9\n',
]
STEPS, MICRO, GLOBAL, SAMPLES = 20, 4, 8, 24


def has_dropout(model, way):
    return export_gpt.WAYS[way]["training"] and ("dropout" in model or model == "encoder-post")


def recipe_for(model, way, optimizer):
    inside = model in ("nano-loss", "nano-picked")
    dims = f"[model]\ndims = {{ seq = {gpt_zoo.POSITIONS} }}\n" if "seq" in export_gpt.WAYS[way]["dynamic"] else ""
    return (f'{dims}[loss]\nkind = "{"output" if inside else "cross_entropy"}"\n[optimizer]\n{optimizer}'
            f"[batch]\nmicro = {MICRO}\nglobal = {GLOBAL}\n"
            f'[data]\ntrain = "data.npz"\nshuffle = false\n[train]\nsteps = {STEPS}\n')


def check(tools, path, model, way, optimizer, scratch):
    module, make_inputs = export_gpt.make_model(model)
    module.eval()
    torch.manual_seed(3)
    inputs = make_inputs(SAMPLES, gpt_zoo.POSITIONS)
    data = {name: tensor.numpy() for name, tensor in inputs.items()}
    data.setdefault("targets", np.random.default_rng(4).integers(0, gpt_zoo.VOCABULARY, (SAMPLES, gpt_zoo.POSITIONS)))
    text = recipe_for(model, way, optimizer)
    np.savez(scratch / "data.npz", **data)
    (scratch / "train.toml").write_text(text)
    expected = train(copy.deepcopy(module), tomllib.loads(text), data, list(inputs))
    titan_job.compile_job(tools, path, scratch / "train.toml", scratch / "job")
    rows = titan_job.train(scratch / "job", scratch / "run", scratch / "data.npz", STEPS)
    return compare_losses(rows, expected)


def main():
    parser = export_gpt.checking_parser(__doc__)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with export_gpt.exports(arguments) as exports:
        chosen = [export for export in exports if not has_dropout(*export[:2])][::arguments.every]
        wrong = 0
        for i, (model, way, path) in enumerate(chosen):
            with tempfile.TemporaryDirectory() as scratch:
                wrong += failed(f"{model}-{way}", check, arguments.tools, path, model, way, OPTIMIZERS[i % 2], Path(scratch))
        print(f"{len(chosen) - wrong} of {len(chosen)} exports train as PyTorch does")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
