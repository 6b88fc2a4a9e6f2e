"""What scripts/compare-builds compiles and trains: the models and recipes of test/training, and the examples, cut to fit a test.

A case is one compilation: a model, a recipe and options, in one precision and for one architecture. Its name is what --only and the
exceptions match: gpt-nano/dynamo-train/accumulate/bf16/native.
"""
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "test" / "training"
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(TRAINING))

import check_random  # noqa: E402
import check_losses  # noqa: E402
from training_test import GPT_DROPOUT, REFERENCES, UNFUSED  # noqa: E402

PRECISIONS = ("f32", "bf16")
ARCHITECTURES = ("native", "x86-64-v3")

# Each kind of layer, loss and optimizer, accumulation, dropout, recomputation; what is not here differs by the way of export, mostly.
QUICK = ("relu/dynamo-train/cosine-clip", "norm-gelu/dynamo-train/ignore-accumulate", "residual/dynamo-train/mse-clip",
         "tied/dynamo-train/bce-adamw", "functional/legacy-train/adam", "loss-inside/dynamo-train/output-accumulate",
         "gpt-nano/dynamo-train/accumulate", "gpt-llama/dynamo-train/adamw", "gpt-masked/dynamo-train/sgd",
         "gpt-dropout/dynamo-train/accumulate", "gpt-nano/dynamo-train/accumulate-recomputed", "mlp/example/train")
QUICK_VARIANTS = (("f32", "native"), ("bf16", "x86-64-v3"))


@dataclass(frozen=True)
class Case:
    name: str
    model: Path
    recipe: Path
    data: Path | None  # nothing: too large to train here
    options: tuple = ()  # of titan-compile
    memory: float | None = None  # memory.limit, as a share of what the old build's job needs without one


def recorded():
    """What check_losses.py compares with PyTorch: each recipe, and each way of export."""
    for folder in sorted(REFERENCES.iterdir()):
        reference = json.loads((folder / "reference.json").read_text())
        for export, recipe in check_losses.pairs(reference):
            yield Case(f"{folder.name}/{export}/{recipe}", folder / f"{export}.onnx", folder / f"{recipe}.toml", folder / "data.npz")


def with_dropout(scratch):
    """What check_random.py and check_equalities.py train."""
    recipe, data = scratch / "random.toml", scratch / "random.npz"
    recipe.write_text(check_random.recipe())
    np.savez(data, x=np.ones((96, check_random.FEATURES), np.float32))
    for model in sorted((TRAINING / "random").glob("*.onnx")):
        yield Case(f"random/{model.stem}/sgd", model, recipe, data)
    folder = REFERENCES / "gpt-nano"
    for model in sorted(GPT_DROPOUT.glob("*.onnx")):
        for recipe in ("sgd", "adamw", "accumulate"):
            yield Case(f"gpt-dropout/{model.stem}/{recipe}", model, folder / f"{recipe}.toml", folder / "data.npz")


def otherwise(cases):
    """Some of `cases` cut up, unfused and under limits of memory, as check_equalities.py does it."""
    found = {case.name: case for case in cases}

    def variant(name, suffix, options=(), memory=None):
        case = found[name]
        return Case(f"{name}-{suffix}", case.model, case.recipe, case.data, options, memory)

    for name in ("relu/dynamo-train/accumulate", "sequence/dynamo-train/adamw", "gpt-course/dynamo-train/accumulate"):
        for micro in (16, 1):
            yield variant(name, f"micro{micro}", ("--set", f"batch.micro={micro}"))
    for name in ("relu/dynamo-train/accumulate", "norm-gelu/dynamo-train/smoothing-ignore", "gpt-dropout/dynamo-train/adamw",
                 "gpt-llama/dynamo-train/adamw", "gpt-masked/dynamo-train/adamw"):
        yield variant(name, "unfused", tuple(UNFUSED))
    for name in ("gpt-nano/dynamo-train/accumulate", "gpt-dropout/dynamo-train/accumulate", "gpt-llama/dynamo-train/accumulate"):
        yield variant(name, "recomputed", memory=0.95)


def examples(scratch):
    """Small data in the shapes that the examples read; GPT-2 and the Llama are compiled, not trained."""
    random = np.random.default_rng(0)
    glyphs, text = scratch / "glyphs.npz", scratch / "train.txt"
    np.savez(glyphs, x=random.integers(0, 256, (256, 1, 28, 28), np.uint8), targets=random.integers(0, 36, 256))
    subprocess.run([EXAMPLES / "char/make_text", scratch, "300000"], check=True, capture_output=True)
    short = ("--set", "model.dims={ seq = 32 }", "--set", "batch.micro=4", "--set", "batch.global=8")
    yield Case("mlp/example/train", EXAMPLES / "mlp/mlp.onnx", EXAMPLES / "mlp/train.toml", glyphs)
    yield Case("char/example/train", EXAMPLES / "char/char.onnx", EXAMPLES / "char/train.toml", text, short)
    for name in ("gpt2", "llama"):
        yield Case(f"{name}/example/train", EXAMPLES / f"{name}/{name}.onnx", EXAMPLES / f"{name}/train.toml", None)


def variants(case, pairs):
    for precision, architecture in pairs:
        yield Case(f"{case.name}/{precision}/{architecture}", case.model, case.recipe, case.data,
                   (*case.options, "--set", f"precision.compute={precision}", f"--arch={architecture}"), case.memory)


def all_cases(scratch, quick=False):
    """Every case; `scratch` takes the data that no repository holds."""
    cases = [*recorded(), *with_dropout(scratch)]
    cases += otherwise(cases)
    cases += examples(scratch)
    if not quick:
        return [one for case in cases for one in variants(case, [(p, a) for p in PRECISIONS for a in ARCHITECTURES])]
    found = {case.name: case for case in cases}
    return [one for name in QUICK for one in variants(found[name], QUICK_VARIANTS)]
