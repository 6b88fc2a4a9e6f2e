"""check-written-model.py TOOLS PAGE SCRATCH: the model of docs/writing-models.md compiles and trains, and mistakes in it get the messages
that the page quotes.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

tools, page, scratch = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).read_text(), Path(sys.argv[3])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
model = re.search(r"```mlir\n(.*?)```", page, re.S)[1]
NUMBERS = ("batch.micro=16", "batch.global=16")
# What is written instead of what, for each message of the page in order.
MISTAKES = (("titan.relu", "titan.rellu"), ("titan.state = @fc2.weight", "titan.state = @fc3.weight"),
            ('{path = ["relu"]} : tensor<16x8xf32>', '{path = ["relu"]} : tensor<16x9xf32>'))


def run(*command):
    return subprocess.run([str(part) for part in command], cwd=scratch, capture_output=True, text=True)


def compiled(text):
    (scratch / "classifier.mlir").write_text(text)
    return run(tools / "titan-compile", "classifier.mlir", *(part for number in NUMBERS for part in ("--set", number)))


def main():
    if (done := compiled(model)).returncode != 0:
        return f"the model of the page does not compile: {done.stderr}"
    random = np.random.default_rng(0)
    x = random.standard_normal((256, 4)).astype(np.float32)
    np.savez(scratch / "train.npz", x=x, targets=(x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0))
    done = run("./classifier", "train", "--data", "train.npz", "--steps", 200, "--set", "optimizer.lr=0.01")
    if done.returncode != 0:
        return f"its job does not train: {done.stderr}"
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stderr + done.stdout)]
    if not losses[-1] < 0.7 * losses[0]:
        return f"the loss goes from {losses[0]} to {losses[-1]}"
    for (right, wrong), message in zip(MISTAKES, re.findall(r"^error: (.*)$", page, re.M), strict=True):
        if right not in model:
            return f"'{right}' is not in the model of the page"
        done = compiled(model.replace(right, wrong, 1))
        if done.returncode != 1 or done.stderr.strip() != f"error: {message}":
            return f"the page says '{message}', titan-compile (exit {done.returncode}) says '{done.stderr.strip()}'"
    return None


problem = main()
if problem:
    print(problem)
    sys.exit(1)
