"""llm.c's train_gpt2.c (github.com/karpathy/llm.c), built with the flags of its Makefile for this processor and OpenMP; f32.

    llm_c.py FOLDER f32 CHECKOUT        $CC compiles it (default: gcc, else clang)
"""
import ctypes
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import protocol

protocol.limit_threads()
import numpy as np
from safetensors.numpy import load_file

import problem

FLAGS = ["-Ofast", "-march=native", "-fopenmp", "-DOMP"]
BLOCK = ["norm_1.weight", "norm_1.bias", "attention.qkv.weight", "attention.qkv.bias", "attention.projection.weight", "attention.projection.bias",
         "norm_2.weight", "norm_2.bias", "expand.weight", "expand.bias", "contract.weight", "contract.bias"]


def build(checkout, library):
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        sys.exit("no C compiler: set CC")
    if not (checkout / "train_gpt2.c").exists():
        sys.exit(f"{checkout} has no train_gpt2.c: it is no checkout of llm.c")
    command = [compiler, *FLAGS, "-w", "-shared", "-fPIC", "-I", checkout, Path(__file__).with_name("llm_c.c"), "-lm", "-o", library]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit((done.stderr.strip().splitlines() or [f"{compiler}: exit {done.returncode}"])[-1])
    return ctypes.CDLL(str(library))


def write_checkpoint(weights, row, path):
    """In llm.c's format: a header of 256 i32, then the tensors, those of all blocks together."""
    header = np.zeros(256, np.int32)
    positions = weights["positions.weight"].shape[0]
    # magic number, version, ..., padded vocabulary
    header[:8] = 20240326, 3, positions, row["vocabulary"], row["layers"], row["heads"], row["width"], row["vocabulary"]
    names = ["tokens.weight", "positions.weight", *(f"blocks.{i}.{name}" for name in BLOCK for i in range(row["layers"])), "norm.weight", "norm.bias"]
    assert set(names) == set(weights)
    with open(path, "wb") as file:
        for array in (header, *(weights[name].astype(np.float32) for name in names)):
            array.tofile(file)


def version(checkout):
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "of unknown revision"


def trainer(library, checkpoint, row, batches):
    """A function that takes n steps and returns the last one's loss."""
    library.load.restype, library.step.restype = ctypes.c_void_p, ctypes.c_float
    model = ctypes.c_void_p(library.load(str(checkpoint).encode()))
    rates = [ctypes.c_float(rate) for rate in (problem.LEARNING_RATE, *problem.BETAS, problem.EPSILON, problem.WEIGHT_DECAY)]
    numbered = enumerate(itertools.cycle([[np.ascontiguousarray(part, np.int32) for part in batch] for batch in batches]), 1)

    def train(steps):
        for number, batch in itertools.islice(numbered, steps):
            tokens, targets = (part.ctypes.data_as(ctypes.c_void_p) for part in batch)
            loss = library.step(model, tokens, targets, row["batch"], row["length"], number, *rates)
        return loss

    return train


def main():
    folder, _, row = problem.arguments()
    checkout = Path(sys.argv[3]).resolve()
    library = build(checkout, folder / "llm_c.so")
    checkpoint = folder / "llm_c.bin"
    write_checkpoint(load_file(folder / "weights.safetensors"), row, checkpoint)
    protocol.serve(problem, version(checkout), trainer(library, checkpoint, row, problem.batches(folder, row)))


if __name__ == "__main__":
    main()
