#!/usr/bin/env python3
"""Random numbers by their statistics: no two runs of PyTorch and Titan could agree on a mask.

The model's loss is mean(draw(x * scale)^2) with x = 1 and scale = 1, held there by a tiny learning rate. It is the mean of
n independent numbers, whose mean and variance the table gives. Over the steps of a run the losses have that mean, and
that variance over n; and |d loss / d scale| = 2 * loss at every step, if and only if backward uses the numbers of
forward. Numbers belong to samples: microbatches of another size draw the same. In evaluation nothing is dropped.

    check_random.py --tools build/dev/bin
"""
import argparse
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import titan_job
from verdict import failed

P, FEATURES, CHANNELS, MICRO, MICROBATCHES, STEPS = 0.3, 64, 8, 8, 2, 400
SAMPLES = MICRO * MICROBATCHES


@dataclass
class Drawn:
    n: int  # independent numbers in a step
    mean: float  # of one of them
    variance: float
    evaluation: float = None  # the loss without training; None: drawn there too
    of_samples: bool = True  # not of whole microbatches


def dropped(n, **how):
    """Kept with 1 - p, and scaled by its inverse: the square is 1 / (1 - p)^2 or 0."""
    return Drawn(n, 1 / (1 - P), P / (1 - P) ** 3, evaluation=1.0, **how)


CASES = {
    "dropout": dropped(SAMPLES * FEATURES),
    "depth-rows": dropped(SAMPLES),
    "depth-floor": dropped(SAMPLES),
    "depth-batch": dropped(MICROBATCHES, of_samples=False),
    "channels": dropped(SAMPLES * CHANNELS),
    "normal": Drawn(SAMPLES * FEATURES, 2, 6),  # (1 + z)^2, and z^2 has the variance 2
    "uniform": Drawn(SAMPLES * FEATURES, 7 / 3, 31 / 5 - 49 / 9),  # (1 + u)^2
    "normal-rows": Drawn(SAMPLES, 1, 2),  # z^2
    "bernoulli": Drawn(SAMPLES * FEATURES, 1 - P, P * (1 - P)),
}


def recipe(micro=MICRO):
    return f"""\
[loss]
kind = "output"
[optimizer]
kind = "sgd"
lr = 1e-20
[batch]
micro = {micro}
global = {SAMPLES}
[data]
train = "data.npz"
[train]
steps = {STEPS}
"""


def wrong_statistics(rows, drawn):
    losses = np.array([row["loss"] for row in rows])
    wrong = []
    if len(losses) != STEPS:
        return [f"{len(losses)} steps in metrics.jsonl, expected {STEPS}"]
    variance = drawn.variance / drawn.n
    # Five standard deviations of each estimate: the draws are fixed by the seed, so this passes always or never. The
    # losses of many numbers are nearly normal; of two decisions a step, their fourth moment is of that order too.
    if abs(losses.mean() - drawn.mean) > 5 * (variance / STEPS) ** 0.5:
        wrong.append(f"mean loss {losses.mean():.5f}, expected {drawn.mean:.5f}: probability or scaling is wrong")
    if abs(losses.var() / variance - 1) > 5 * (2 / STEPS) ** 0.5:
        wrong.append(f"variance {losses.var():.3e}, expected {variance:.3e}: numbers are correlated over elements, "
                     "samples or microbatches")
    pairs = np.corrcoef(losses[:-1], losses[1:])[0, 1]
    if not abs(pairs) < 5 / STEPS**0.5:
        wrong.append(f"losses of consecutive steps correlate ({pairs:.2f}): numbers do not change from step to step")
    gradients = np.array([row["grad_norm"] for row in rows])
    if not np.allclose(gradients, 2 * losses, rtol=1e-5):
        wrong.append("the gradient is not that of the numbers that forward used")
    return wrong


def loss_in_evaluation(job, run, data):
    said = titan_job.run([job, "eval", "--out", run, "--data", data])
    found = re.search(r"loss[ =:]+([0-9.e+-]+)", said)
    if not found:
        raise titan_job.Failure(f"eval says no loss: {said}")
    return float(found.group(1))


def check(tools, model, scratch):
    drawn = CASES[model.name.split(".")[0]]
    data = scratch / "data.npz"
    jobs = {}
    for micro in (MICRO, SAMPLES):
        (scratch / "train.toml").write_text(recipe(micro))
        jobs[micro] = scratch / f"{model.stem}-{micro}"
        titan_job.compile_job(tools, model, scratch / "train.toml", jobs[micro])
    run = scratch / f"{model.stem}.run"
    rows = titan_job.train(jobs[MICRO], run, data, STEPS)
    wrong = wrong_statistics(rows, drawn)
    if drawn.of_samples:
        whole = titan_job.train(jobs[SAMPLES], scratch / f"{model.stem}.whole", data, 5)
        if not np.allclose([row["loss"] for row in rows[:5]], [row["loss"] for row in whole], rtol=1e-5):
            wrong.append("one microbatch draws other numbers than two")
    evaluated = [loss_in_evaluation(jobs[MICRO], run, data) for _ in range(2)]
    if evaluated[0] != evaluated[1] or evaluated[0] != (drawn.evaluation or evaluated[0]):
        wrong.append(f"evaluation gives {evaluated}, expected {drawn.evaluation or 'the same twice'}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--only", default="", help="one case's name")
    arguments = parser.parse_args()
    models = sorted((Path(__file__).parent / "random").glob(f"{arguments.only or '*'}.*.onnx"))
    wrong = 0
    if not arguments.only and {model.name.split(".")[0] for model in models} != set(CASES):
        sys.exit("random/ holds other cases than this script knows")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        np.savez(scratch / "data.npz", x=np.ones((96, FEATURES), np.float32))
        for model in models:
            wrong += failed(model.stem, check, arguments.tools, model, scratch)
    return 1 if wrong or not models else 0


if __name__ == "__main__":
    sys.exit(main())
