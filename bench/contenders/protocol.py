"""How a benchmark's driver talks to the process of a contender.

A contender is a program that sets itself up, compiles and takes its first steps, prints `ready {json}`, then for each line `N`
on its input runs N training steps and prints `answer {json}`. It runs alone: the others wait on their input.

    ready     version, first_step (seconds, compilation included), losses (of the first steps)
    answer    seconds (of the N steps), peak_bytes (resident, of the process that trains, so far)

One that cannot run says why on the last line of its standard error, and exits. One that trains on several ranks shares out its threads
among them; the driver talks to the first, which passes on what it is asked, and peak_bytes are those of the rank that took most.
"""
import json
import os
import sys
import time

THREADS = 2  # of all processes of a contender together
RANKS = 2  # of a contender that trains on several


def limit_threads():
    """Before a framework is imported. A rank, which RANK and WORLD_SIZE say as for torchrun, gets its part of the CPUs. Returns how many threads
    this process may have."""
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    threads = THREADS // ranks
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={threads}"
    cpus = sorted(os.sched_getaffinity(0))[:THREADS]
    os.sched_setaffinity(0, cpus[rank * threads:(rank + 1) * threads] or cpus)
    return threads


def peak_bytes(process="self"):
    """The largest resident set that the process had so far; 0 where it has ended."""
    try:
        with open(f"/proc/{process}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def answer_requests(facts, measure, others=()):
    """Says `facts`, then answers each request for n steps with what `measure(n)` returns; `others` are processes that get the request, too."""
    print("ready", json.dumps(facts), flush=True)
    for line in sys.stdin:
        for other in others:
            other.stdin.write(line)
            other.stdin.flush()
        print("answer", json.dumps(measure(int(line))), flush=True)


def serve(problem, version, train, others=()):
    """`train(n)` runs n steps, waits for the last, and returns its loss; the first problem.CHECKED losses are reported. `others`: processes of
    the other ranks, which call this, too."""
    started = time.perf_counter()
    losses = [train(1)]
    first = time.perf_counter() - started
    losses += [train(1) for _ in range(problem.CHECKED - 1)]
    train(problem.WARM_UP)

    def measure(steps):
        started = time.perf_counter()
        train(steps)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "peak_bytes": max(map(peak_bytes, ["self", *(other.pid for other in others)]))}

    answer_requests({"version": version, "first_step": first, "losses": losses}, measure, others)
