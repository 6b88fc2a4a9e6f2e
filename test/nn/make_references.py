"""Records the references of this folder from PyTorch and transformers. Run in the peers' environment (scripts/install-peers):

    .venv/bin/python test/nn/make_references.py [--only MODEL] [--output DIRECTORY]

Writes references/<model>/: export.onnx, the structure of a real export; weights.safetensors, or a folder weights/ of shards, as the source
writes its checkpoints; data.npz, recipe.toml; and reference.json: the model as titan-compile is asked for it, the losses in f32 and f64, the
state_dict's names and shapes, and the L2 norm and the projection (compare.py) of each trained tensor. check_known.py compares jobs with them.
"""
import argparse
import copy
import json
import logging
import shutil
import sys
import tomllib
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_model

sys.path += [str(Path(__file__).parent.parent / "training"), str(Path(__file__).parents[2] / "examples")]
from compare import values_of
from export_model import LISTING
from known_models import MODELS
from logits import Logits
from structure import export_structure
from torch_training import train

STEPS = 20


def save_weights(known, model, folder):
    """As the source's library writes them."""
    if isinstance(model, transformers.PreTrainedModel):
        scratch = folder / "weights"
        model.save_pretrained(scratch, max_shard_size=known.shard or "5GB")
        if known.shard:
            for extra in [*scratch.glob("*config.json"), *scratch.glob("*.md")]:
                extra.unlink()
        else:
            (scratch / "model.safetensors").rename(folder / "weights.safetensors")
            shutil.rmtree(scratch)
    else:
        save_model(model, folder / "weights.safetensors")


def record(known, output):
    torch.manual_seed(0)
    folder = output / known.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = known.make()
    recipe = tomllib.loads(known.recipe)
    (folder / "recipe.toml").write_text(known.recipe)
    data = known.data(np.random.default_rng(0))
    np.savez_compressed(folder / "data.npz", **data)
    save_weights(known, model, folder)
    module = Logits(model) if isinstance(model, transformers.PreTrainedModel) else model
    inputs = [name for name in data if name != "targets"]
    export_structure(copy.deepcopy(module), torch.from_numpy(data[inputs[0]][:2]), [*inputs, "logits"], {0: ("batch", 2, 65536)} | known.dims,
                     folder / "export.onnx", LISTING)
    losses, trained = {}, {}
    for label, dtype in (("f32", torch.float32), ("f64", torch.float64)):
        copied = copy.deepcopy(model).train()
        runner = Logits(copied) if isinstance(model, transformers.PreTrainedModel) else copied
        losses[label] = train(runner, recipe, data, inputs, dtype)
        trained[label] = copied.state_dict()
    reference = {"request": known.request, "recipes": losses, "source": known.source(),
                 "state": {name: list(tensor.shape) for name, tensor in model.state_dict().items()},
                 "aliases": known.aliases}
    reference |= values_of({name: tensor.numpy() for name, tensor in trained["f64"].items()})
    (folder / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses["f32"], losses["f64"]))
    print(f"{known.name}: losses {losses['f32'][0]:.4f} to {losses['f32'][-1]:.4f}, f32 from f64 {worst:.1e}, {size / 1024:.0f} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="models whose name starts so")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "references")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for known in MODELS:
        if known.name.startswith(arguments.only):
            record(known, arguments.output)


if __name__ == "__main__":
    main()
