"""The networks of the benchmark of families in bf16 beside f32: is the mean of the last 20 of 200 losses within two standard deviations of that
of five f32 runs, each from its own initial weights and order of samples?

    test/peers/run-with-peers test/peers/families_bf16.py --tools build/dev/bin [--rows resnet18,mobilenet,unet,lstm] [--batch 8]

The data can be learnt: images are a template of their class under noise, a pixel's class is the band of its smoothed brightness, and a token follows
from the one before it.
"""
import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/training"), str(ROOT / "bench")]
import titan_job
from side_by_side import CONTENDERS, prepare, processor
from verdict import failed

sys.path.insert(0, str(CONTENDERS / "families"))
import problem

SAMPLES, STEPS, LAST, SEEDS = 512, 200, 20, 5
RECIPE = """\
[model]
init = "fresh"
[optimizer]
kind = "adamw"
lr = 1e-3
weight_decay = 0.1
clip_norm = 1.0
[batch]
micro = {batch}
global = {batch}
"""


def smooth(images, times=4):
    """The mean of each pixel and its four neighbours, `times` over; images wrap around."""
    for _ in range(times):
        images = (images + sum(np.roll(images, shift, axis) for axis in (-1, -2) for shift in (1, -1))) / 5
    return images


def draw_tokens(row, random):
    count = row.sample[0] + 1
    tokens = np.empty((SAMPLES, count), np.int64)
    tokens[:, 0] = random.integers(0, row.tokens, SAMPLES)
    for place in range(1, count):
        tokens[:, place] = (7 * tokens[:, place - 1] + random.integers(0, 4, SAMPLES)) % row.tokens
    return tokens[:, :-1], tokens[:, 1:]


def draw_samples(row):
    """Samples and targets."""
    random = np.random.default_rng(0)
    if row.tokens:
        return draw_tokens(row, random)
    images = random.standard_normal((SAMPLES, *row.sample), np.float32)
    if row.targets:
        brightness = smooth(images[:, 0], 8)
        bounds = np.quantile(brightness, np.linspace(0, 1, row.classes + 1)[1:-1])
        return images, np.digitize(brightness, bounds).astype(np.int64)
    templates = 4 * smooth(random.standard_normal((row.classes, *row.sample), np.float32))
    classes = random.integers(0, row.classes, SAMPLES)
    return images + templates[classes], classes


def mean_of_last(job, folder, seed):
    run = folder / f"{job.name}-{seed}"
    losses = [line["loss"] for line in titan_job.train(job, run, folder / "data.npz", STEPS, 2, "--set", f"train.seed={seed}",
                                                       "--set", "checkpoint.preflight=off")]
    return statistics.mean(losses[-LAST:]), losses[0]


def check(name, arguments, folder):
    row = problem.ROWS[name]
    reason = prepare("families/prepare.py", folder, name)
    if reason:
        raise titan_job.Failure(f"the network cannot be exported: {reason}")
    samples, targets = draw_samples(row)
    np.savez(folder / "data.npz", x=samples, targets=targets)
    (folder / "train.toml").write_text(RECIPE.format(batch=arguments.batch or row.batch))
    for precision in ("f32", "bf16"):
        titan_job.compile_job(arguments.tools, folder / "model.onnx", folder / "train.toml", folder / precision, "--set", f"precision.compute={precision}")
    runs = [mean_of_last(folder / "f32", folder, seed) for seed in range(SEEDS)]
    means = [mean for mean, _ in runs]
    middle, deviation = statistics.mean(means), statistics.stdev(means)
    narrow, _ = mean_of_last(folder / "bf16", folder, 0)
    print(f"| {name} | {runs[0][1]:.4f} | {middle:.4f} | {deviation:.4f} | {narrow:.4f} | {(narrow - middle) / deviation:+.2f} |", flush=True)
    return [] if abs(narrow - middle) <= 2 * deviation else [f"bf16 {narrow:.4f}, f32 {middle:.4f} ± {deviation:.4f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path)
    parser.add_argument("--rows", default=",".join(problem.ROWS))
    parser.add_argument("--batch", type=int, help="samples of a step; default: the benchmark's")
    arguments = parser.parse_args()
    print(f"{processor()[0]}; AdamW, {STEPS} steps, means of the last {LAST}, {SEEDS} f32 seeds\n\n"
          "| row | first loss | f32 | deviation | bf16 | deviations from f32 |\n|---|---|---|---|---|---|")
    wrong = 0
    for name in arguments.rows.split(","):
        with tempfile.TemporaryDirectory(prefix="titan-bf16-") as folder:
            wrong += failed(name, check, name, arguments, Path(folder))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
