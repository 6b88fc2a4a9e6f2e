"""How a benchmark's driver talks to the process of a contender.

A contender is a program that sets itself up, compiles and takes its first steps, prints `ready {json}`, then for each line `N`
on its input runs N training steps and prints the seconds they took and its peak memory in bytes. It runs alone: the others wait on
their input. The facts of `ready`: version, first_step (seconds, compilation included), losses (of the first steps).
"""
import json
import os
import sys
import time

THREADS = 2


def limit_threads():
    """Before a framework is imported."""
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(THREADS)
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=2"
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


def peak_bytes(process="self"):
    """The largest resident set that the process had so far."""
    with open(f"/proc/{process}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def ready(facts):
    print("ready", json.dumps(facts), flush=True)


def requests():
    """The numbers of steps that the driver asks for."""
    for line in sys.stdin:
        yield int(line)


def serve(train, version, warm_up, checked=1):
    """`train(n)` runs n steps, waits for the last, and returns its loss; the first `checked` losses are reported."""
    started = time.perf_counter()
    losses = [train(1)]
    first = time.perf_counter() - started
    losses += [train(1) for _ in range(checked - 1)]
    if warm_up:
        train(warm_up)
    ready({"version": version, "first_step": first, "losses": losses})
    for count in requests():
        started = time.perf_counter()
        train(count)
        print(time.perf_counter() - started, peak_bytes(), flush=True)
