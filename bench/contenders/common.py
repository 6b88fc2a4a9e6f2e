"""The benchmark's problem, and the protocol by which bench/mlp.py talks to a contender's process.

A contender is a program that sets itself up, compiles and warms up, prints `ready {json}`, then for each line `N`
on its input runs N training steps and prints the seconds they took. It runs alone: the others wait on their input.
"""
import json
import os
import sys
import time

import numpy as np

THREADS = 2
BATCH, FEATURES, HIDDEN, CLASSES = 64, 784, 128, 10
BATCHES = 16  # different batches, used in turn; already in memory and in the contender's own format
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 1e-3, (0.9, 0.999), 1e-8, 0.01
WARM_UP = 200


def batches():
    """[BATCHES, BATCH, FEATURES] f32 and [BATCHES, BATCH] int64."""
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCHES, BATCH, FEATURES)).astype(np.float32)
    return x, random.integers(0, CLASSES, (BATCHES, BATCH))


def serve(train, version):
    """`train(n)` runs n steps, waits for the last, and returns its loss."""
    started = time.perf_counter()
    train(1)
    first = time.perf_counter() - started
    train(WARM_UP)
    print("ready", json.dumps({"version": version, "first_step": first}), flush=True)
    for line in sys.stdin:
        count = int(line)
        started = time.perf_counter()
        train(count)
        print(time.perf_counter() - started, flush=True)


def limit_threads():
    """Before a framework is imported."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(THREADS)
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=2"
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
