#!/usr/bin/env python3
"""Dropout by its statistics: no two runs of PyTorch and Titan could agree on a mask.

The model's loss is mean((dropout(x * scale))^2) with x = 1 and scale = 1, held there by a tiny learning rate. Of n
elements, K ~ Binomial(n, 1 - p) are kept, and the loss is K / (n (1 - p)^2). So over the steps of a run
    mean = 1 / (1 - p)     variance = p / (n (1 - p)^3)
and |d loss / d scale| = 2 * loss at every step, if and only if backward uses the mask of forward.

    check_dropout.py --tools build/dev/bin
"""
import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import titan_job
from verdict import failed

P, FEATURES, MICRO, MICROBATCHES, STEPS = 0.3, 64, 8, 2, 400
RECIPE = f"""\
[loss]
kind = "output"
[optimizer]
kind = "sgd"
lr = 1e-20
[batch]
micro = {MICRO}
global = {MICRO * MICROBATCHES}
[data]
train = "data.npz"
[train]
steps = {STEPS}
"""


def wrong_statistics(rows):
    losses = np.array([row["loss"] for row in rows])
    n = FEATURES * MICRO * MICROBATCHES
    mean, variance = 1 / (1 - P), P / (n * (1 - P) ** 3)
    wrong = []
    if len(losses) != STEPS:
        return [f"{len(losses)} steps in metrics.jsonl, expected {STEPS}"]
    # Five standard deviations of each estimate: the draws are fixed by the seed, so this passes always or never.
    if abs(losses.mean() - mean) > 5 * (variance / STEPS) ** 0.5:
        wrong.append(f"mean loss {losses.mean():.5f}, expected {mean:.5f}: the keep probability or the scaling is wrong")
    if abs(losses.var() / variance - 1) > 5 * (2 / STEPS) ** 0.5:
        wrong.append(f"variance {losses.var():.3e}, expected {variance:.3e}: masks are correlated over elements, "
                     "samples or microbatches")
    pairs = np.corrcoef(losses[:-1], losses[1:])[0, 1]
    if not abs(pairs) < 5 / STEPS**0.5:
        wrong.append(f"losses of consecutive steps correlate ({pairs:.2f}): masks do not change from step to step")
    gradients = np.array([row["grad_norm"] for row in rows])
    if not np.allclose(gradients, 2 * losses, rtol=1e-5):
        wrong.append("the gradient is not that of the mask that forward used")
    return wrong


def check(tools, model, scratch):
    job = scratch / model.stem
    titan_job.compile_job(tools, model, scratch / "train.toml", job)
    return wrong_statistics(titan_job.train(job, scratch / f"{model.stem}.run", scratch / "data.npz", STEPS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    arguments = parser.parse_args()
    wrong, models = 0, sorted((Path(__file__).parent / "dropout").glob("*.onnx"))
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        (scratch / "train.toml").write_text(RECIPE)
        np.savez(scratch / "data.npz", x=np.ones((96, FEATURES), np.float32))
        for model in models:
            wrong += failed(model.stem, check, arguments.tools, model, scratch)
    return 1 if wrong or not models else 0


if __name__ == "__main__":
    sys.exit(main())
