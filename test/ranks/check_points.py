#!/usr/bin/env python3
"""A rank that is lost at any point: drawn ranks, ways and moments.

    check_points.py --tools build/dev/bin [--seed 1] [--points 50] [unittest's options]

Each point is a run of its own on two ranks, two runs side by side. A rank is killed, stopped, ends by SIGSEGV or by exit(0) in the agreement, in a
collective, in a save (between what rank 0 writes and the barrier, too), in an evaluation or at the exit. Then all is gone within seconds, the exit
code is 5, the rank and who waited where are named, and every checkpoint verifies.
"""
import collections
import concurrent.futures
import random
import signal
import subprocess
import sys
import time

import ranks_test
from ranks_test import GONE, is_alive

SEED = 1
POINTS = 50
STOPS = 8  # of 50 points at most: each takes seconds to be seen
EXIT = signal.SIGRTMIN + 1  # RankFaults.cpp
MISSED = 0.3  # of the points may come too late: the run has ended

# A wait's name, and how many waits come before it at most.
PHASES = {"agreement": ("the ", 3), "collective": ("all_reduce of", 60), "save": ("save ", 60), "evaluation": ("the sums of the evaluation", 60),
          "exit": ("the end of the job", 0)}
WAYS = {signal.SIGKILL: "was killed by signal 9", signal.SIGSEGV: "was killed by signal 11", EXIT: "left with exit code 0 before the job's end",
        signal.SIGSTOP: ""}

Point = collections.namedtuple("Point", "number phase rank way who name waits")


def draw_points(seed, count):
    draw, points, stops = random.Random(seed), [], 0
    for number in range(count):
        phase = draw.choice(list(PHASES))
        way = draw.choice(list(WAYS))
        if way == signal.SIGSTOP and stops >= STOPS * count // 50:
            way = signal.SIGKILL
        stops += way == signal.SIGSTOP
        name, most = PHASES[phase]
        rank, who = draw.randint(0, 1), draw.choice(("self", "others"))
        if phase == "save" and who == "others":
            rank = 0  # which writes, while the other waits
        points.append(Point(number, phase, rank, way, who, name, draw.randint(0, most)))
    return points


class Points(ranks_test.RanksTest):
    def run_point(self, train, point):
        """What is wrong; None: the moment did not come, and the run went well."""
        out = self.scratch / f"run-{point.number}"
        process = self.start(2, *train, "--out", out)
        lose = subprocess.run([self.tools.parent / "test/titan_lose_rank", str(process.pid), "2", str(point.rank), str(int(point.way)), point.who,
                               point.name, str(point.waits)], capture_output=True, text=True, timeout=ranks_test.LIMIT)
        began = time.monotonic()
        code, _, err = self.finish(process)
        seconds = time.monotonic() - began
        if lose.returncode == 1:
            return None if code == 0 else [f"exit code {code} without a loss: {err}"]
        pids = [int(pid) for pid in lose.stdout.split()]
        wrong = []
        # Who has finished may end as it likes.
        if code != 5 and not (code == 0 and point.phase == "exit"):
            wrong.append(f"exit code {code}")
        if seconds > GONE:
            wrong.append(f"gone after {seconds:.1f} s")
        if any(is_alive(pid) for pid in pids):
            wrong.append("a rank is left")
        errors = [line for line in err.splitlines() if "error:" in line]
        if code == 5 and len(errors) != 1:
            wrong.append(f"{len(errors)} errors")
        if code == 5 and f"rank {point.rank} (pid {pids[point.rank]}) {WAYS[point.way]}" not in errors[0]:
            wrong.append("the rank is not named")
        if code == 5 and point.phase != "exit" and f"rank {1 - point.rank} waited at '" not in errors[0]:
            wrong.append("who waited is not named")
        for checkpoint in sorted((out / "checkpoints").glob("step-*")):
            if subprocess.run([self.tools / "titan-ckpt", "verify", checkpoint], capture_output=True).returncode != 0:
                wrong.append(f"{checkpoint.name} does not verify")
        return [f"{text}: {err}" for text in wrong]

    def test_a_rank_lost_at_any_point(self):
        job, data = self.mlp({"replicate": 2})
        train = [self.faults("", job), "train", "--data", data, "--steps", 16, "--threads", 1, "--set", "checkpoint.every=4", "--set",
                 "train.eval_every=3", "--set", f"data.eval={data}"]
        points, hits = draw_points(SEED, POINTS), collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda point: self.run_point(train, point), points))
        for point, wrong in zip(points, results):
            with self.subTest(**{**point._asdict(), "way": int(point.way)}):
                self.assertEqual(wrong or [], [])
            hits[point.phase] += wrong is not None
        print(dict(hits), flush=True)
        self.assertGreaterEqual(sum(hits.values()), (1 - MISSED) * POINTS)
        self.assertEqual(hits.keys(), {point.phase for point in points})


def option(name, default):
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


if __name__ == "__main__":
    SEED, POINTS = option("--seed", SEED), option("--points", POINTS)
    print(f"--seed {SEED} --points {POINTS}", flush=True)
    ranks_test.main(__doc__)
