#!/usr/bin/env python3
"""What a step sends: closed forms, the plan of the table, and what the copy loop counted are the same numbers.

    check_ledger.py --tools build/dev/bin [unittest's options]
"""
import json

import numpy as np

import ranks_test
from ranks_test import plan_of, titan_job

SCALARS = 4 + 8 + 8  # bytes: the loss sum in f32, the count of valid targets and the stop flags in i64


class Ledger(ranks_test.RanksTest):
    def trained_bytes(self, job):
        info = json.loads(titan_job.run([job, "info", "--json"]))
        return sum(4 * int(np.prod(p["shape"], dtype=np.int64)) for p in info["parameters"] if p.get("trainable", True))

    def step_rows(self, rows):
        return [row for row in rows if row["function"] == "step"]

    def check(self, axes, batch=64):
        ranks = int(np.prod(list(axes.values())))
        job, data = self.mlp(axes, batch)
        planned = self.step_rows(plan_of(job)["communication"])
        code, out, err = self.run_ranks(ranks, job, "profile", "--data", data, "--steps", 4, "--json", "--trace", self.scratch / "trace")
        self.assertEqual(code, 0, err)
        counted = json.loads(out)["communication"]

        # Forms: the gradients once a step, whatever the number of microbatches, and the scalars.
        payload = sum(row["count"] * row["payload"] for row in planned if row["phase"] == "backward")
        self.assertEqual(payload, self.trained_bytes(job))
        scalars = [row for row in planned if row["phase"] == "update"]
        self.assertEqual([(row["count"], row["payload"]) for row in scalars], [(1, SCALARS)])
        for row in planned:
            self.assertEqual(row["kind"], "all_reduce")
            self.assertEqual(row["axes"], list(axes))
            self.assertEqual(row["wire"], -(-2 * row["payload"] * (ranks - 1) // ranks))

        # The plan is what was counted.
        names = ("phase", "kind", "axes", "dtype", "source", "count", "payload")
        self.assertEqual([[row[name] for name in names] for row in counted], [[row[name] for name in names] for row in planned])
        for row in counted:
            self.assertEqual(row["moved_all"], 2 * (ranks - 1) * row["payload"], row)

    def test_ddp_on_two_ranks(self):
        self.check({"replicate": 2})

    def test_ddp_on_both_axes(self):
        self.check({"replicate": 2, "shard": 2})

    def test_ddp_on_three_ranks(self):
        self.check({"shard": 3}, 96)

    def test_one_rank_sends_nothing(self):
        self.assertEqual(plan_of(self.mlp({})[0])["communication"], [])


if __name__ == "__main__":
    ranks_test.main(__doc__)
