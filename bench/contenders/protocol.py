"""How a benchmark's driver talks to the process of a contender.

A contender is a program that sets itself up, compiles and takes its first steps, prints `ready {json}`, then for each line `N`
on its input runs N training steps and prints `answer {json}`. It runs alone: the others wait on their input.

    ready     version, first_step (seconds, compilation included), losses (of the first steps)
    answer    seconds (of the N steps), peak_bytes (resident, of the process that trains, so far)

One that cannot run says why on the last line of its standard error, and exits.
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
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={THREADS}"
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


def peak_bytes(process="self"):
    """The largest resident set that the process had so far."""
    with open(f"/proc/{process}/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def answer_requests(facts, measure):
    """Says `facts`, then answers each request for n steps with what `measure(n)` returns."""
    print("ready", json.dumps(facts), flush=True)
    for line in sys.stdin:
        print("answer", json.dumps(measure(int(line))), flush=True)


def serve(problem, version, train):
    """`train(n)` runs n steps, waits for the last, and returns its loss; the first problem.CHECKED losses are reported."""
    started = time.perf_counter()
    losses = [train(1)]
    first = time.perf_counter() - started
    losses += [train(1) for _ in range(problem.CHECKED - 1)]
    train(problem.WARM_UP)

    def measure(steps):
        started = time.perf_counter()
        train(steps)
        return {"seconds": time.perf_counter() - started, "peak_bytes": peak_bytes()}

    answer_requests({"version": version, "first_step": first, "losses": losses}, measure)
