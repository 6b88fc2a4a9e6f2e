#!/usr/bin/env python3
"""Ranks that wait for each other: who is slow, who is stuck, and collectives that are made slower.

    check_waits.py --tools build/dev/bin [unittest's options]
"""
import json
import os
import signal
import time

import ranks_test
from ranks_test import GONE, ranks_of


class Waits(ranks_test.RanksTest):
    def metrics(self, out):
        rows = [json.loads(line) for line in (self.scratch / out / "metrics.jsonl").read_text().splitlines()]
        return [row for row in rows if "loss" in row]

    def test_a_slow_rank_is_in_the_metrics_and_in_a_note(self):
        job, data = self.mlp({"replicate": 2})
        process = self.start(2, job, "train", "--data", data, "--out", self.scratch / "run", "--steps", 100000)
        self.wait_for_steps(process, "run", 5)
        slow = ranks_of(process)[1]
        begin = self.lines("run")
        end = begin + 80
        while self.lines("run") < end:  # it runs for a seventh of the time
            os.kill(slow, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(slow, signal.SIGCONT)
            time.sleep(0.005)
        process.terminate()
        code, _, err = self.finish(process)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"note: rank 1 computes \d+\.\d\d x as long as the median rank over 20 steps")
        rows = self.metrics("run")
        for row in rows:
            self.assertGreaterEqual(row["wait_seconds"], 0)
            self.assertIn(row["slowest_rank"], (0, 1))
        # A rank that is stopped while it waits counts that as waiting, so not every such step is its own.
        stopped = [row for row in rows[begin:end] if row["seconds"] > 0.02]
        self.assertIn(1, [row["slowest_rank"] for row in stopped])

    def test_one_rank_waits_for_nobody(self):
        job, data = self.mlp({})
        self.assertEqual(self.run_ranks(None, job, "train", "--data", data, "--out", self.scratch / "run", "--steps", 3)[0], 0)
        for row in self.metrics("run"):
            self.assertNotIn("wait_seconds", row)
            self.assertNotIn("slowest_rank", row)

    def test_a_stuck_rank_is_named_in_time(self):
        # Rank 0 saves for both, to storage that is gone.
        job, data = self.mlp({"replicate": 2})
        faults = self.faults("[ \"$TITAN_RANK\" = 0 ] && export TITAN_TEST_HANG_SYNC=1", job)
        process = self.start(2, faults, "train", "--data", data, "--out", self.scratch / "run", "--steps", 3, "--set", "mesh.warn_after=1",
                             "--set", "mesh.kill_after=2")
        code, _, err = self.finish(process, 2 + GONE)
        self.assertEqual(code, 5, err)
        self.assert_told_once(err, "rank 0 (pid ", "lets the others wait for 2 s, since it left '", "(mesh.kill_after)", "rank 1 waited at '")
        self.assertIn("lets the others wait for 1 s", err)
        flights = json.loads((self.scratch / "run/ranks/rank-0001.json").read_text())
        self.assertEqual(flights["failure"]["rank"], 0)
        self.assertEqual({flight["state"] for flight in flights["collectives"]}, {"done"} if flights["collectives"] else set())

    def test_a_delay_slows_the_same_run_down(self):
        job, data = self.mlp({"replicate": 2})
        plain = self.train(2, job, data, "plain", "--steps", 10)
        os.environ["TITAN_COMM_DELAY"] = "20ms,1GB/s"
        self.addCleanup(os.environ.pop, "TITAN_COMM_DELAY")
        self.assert_same(self.train(2, job, data, "slow", "--steps", 10), plain)
        self.assertTrue(all(row["seconds"] >= 0.02 for row in self.metrics("slow")))
        os.environ["TITAN_COMM_DELAY"] = "soon"
        code, _, err = self.run_ranks(2, job, "train", "--data", data, "--out", self.scratch / "none")
        self.assertEqual(code, 2, err)
        self.assertIn("TITAN_COMM_DELAY = 'soon' is no latency and rate: write 50us,2GB/s", err)


if __name__ == "__main__":
    ranks_test.main(__doc__)
