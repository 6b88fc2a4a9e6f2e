#!/usr/bin/env python3
"""What a step sends: closed forms, the plan of the table, and what the copy loop counted are the same numbers.

    check_ledger.py --tools build/dev/bin [unittest's options]
"""
import json

import numpy as np

import ranks_test
from ranks_test import REFERENCES, plan_of, titan_job

BLOCK = 1 << 20  # bytes of what the host side sends at once
SCALARS = 4 + 8 + 8  # bytes: the loss sum in f32, the count of valid targets and the stop flags in i64


class Ledger(ranks_test.RanksTest):
    def trained_bytes(self, job):
        info = json.loads(titan_job.run([job, "info", "--json"]))
        return sum(4 * int(np.prod(p["shape"], dtype=np.int64)) for p in info["parameters"] if p.get("trainable", True))

    def step_rows(self, rows):
        return [row for row in rows if row["function"] == "step"]

    def check(self, axes, batch=64, *options, times=None):
        """`times`: {axes that one sum of the gradients is over: how often a step}; None: over all, once."""
        times = times or {tuple(axes): 1}
        job, data = self.mlp(axes, batch, *options)
        ranks = int(np.prod(list(axes.values())))
        planned = self.step_rows(plan_of(job)["communication"])
        code, out, err = self.run_ranks(ranks, job, "profile", "--data", data, "--steps", 4, "--json", "--trace", self.scratch / "trace")
        self.assertEqual(code, 0, err)
        counted = self.step_rows(json.loads(out)["communication"])

        # Forms: the gradients once a step, whatever the number of microbatches, or as often as the recipe says; the scalars once.
        gradients = [row for row in planned if row["phase"] == "backward"]
        self.assertEqual({tuple(row["axes"]): row["count"] for row in gradients}, times)
        for over in times:
            self.assertEqual(sum(row["payload"] for row in gradients if tuple(row["axes"]) == over), self.trained_bytes(job) * times[over])
        scalars = [row for row in planned if row["phase"] == "update"]
        self.assertEqual([(row["count"], row["payload"], row["axes"]) for row in scalars], [(1, SCALARS, list(axes))])
        for row in planned:
            group = int(np.prod([axes[axis] for axis in row["axes"]]))
            self.assertEqual(row["kind"], "all_reduce")
            each = row["payload"] // row["count"]
            self.assertEqual(row["wire"], -(-2 * each * (group - 1) // group) * row["count"])

        # The plan is what was counted.
        names = ("phase", "kind", "axes", "dtype", "source", "count", "payload")
        self.assertEqual([[row[name] for name in names] for row in counted], [[row[name] for name in names] for row in planned])
        for row in counted:
            group = int(np.prod([axes[axis] for axis in row["axes"]]))
            self.assertEqual(row["moved_all"], 2 * (group - 1) * row["payload"] * ranks // group, row)

    def test_ddp_on_two_ranks(self):
        self.check({"replicate": 2})

    def test_ddp_on_both_axes(self):
        self.check({"replicate": 2, "shard": 2})

    def test_ddp_on_three_ranks(self):
        self.check({"shard": 3}, 96)

    def test_immediate_sums_with_each_microbatch(self):
        self.check({"replicate": 2}, 128, "--set", "mesh.sync=immediate", times={("replicate",): 4})
        self.check({"shard": 3}, 192, "--set", "mesh.sync=immediate", times={("shard",): 4})

    def test_immediate_with_one_microbatch_sums_once(self):
        self.check({"replicate": 2}, 32, "--set", "mesh.sync=immediate")

    def test_sync_every_sums_behind_so_many(self):
        self.check({"replicate": 2}, 128, "--set", "mesh.sync_every=2", times={("replicate",): 2})
        self.check({"shard": 3}, 192, "--set", "mesh.sync_every=2", times={("shard",): 2})

    def test_each_axis_sums_when_it_is_told_to(self):
        self.check({"replicate": 2, "shard": 2}, 128, "--set", "mesh.sync.shard=immediate", times={("shard",): 2, ("replicate",): 1})

    def test_parts_of_gradients_are_summed_as_often(self):
        for strategy, sync, times in (("fsdp", "mesh.sync=deferred", 1), ("fsdp", "mesh.sync=immediate", 4), ("fsdp", "mesh.sync_every=2", 2),
                                      ("zero2", "mesh.sync=auto", 4)):
            with self.subTest(strategy=strategy, sync=sync):
                job, data = self.mlp({"shard": 2}, 128, "--set", f"mesh.strategy={strategy}", "--set", sync)
                planned = [row for row in self.step_rows(plan_of(job)["communication"]) if row["kind"] == "reduce_scatter"]
                self.assertEqual({row["count"] for row in planned}, {times})
                self.assertEqual(sum(row["payload"] for row in planned), self.trained_bytes(job) * times)
                code, out, err = self.run_ranks(2, job, "profile", "--data", data, "--steps", 4, "--json")
                self.assertEqual(code, 0, err)
                counted = [row for row in json.loads(out)["communication"] if row["kind"] == "reduce_scatter"]
                names = ("phase", "source", "count", "payload")
                self.assertEqual([[row[name] for name in names] for row in counted], [[row[name] for name in names] for row in planned])
                self.assertEqual([row["moved_all"] for row in counted], [row["payload"] for row in planned])

    def test_first_weights_and_loads_pass_on_what_several_ranks_need(self):
        # Of the job's own weights each tensor is sent round by its owner, in pieces with a flag; of a checkpoint each block that several need.
        for strategy, axes, shared in (("ddp", {"replicate": 2}, "*/*.safetensors"), ("zero1", {"shard": 2}, "model/*.safetensors"),
                                       ("fsdp", {"shard": 2}, "nothing")):
            with self.subTest(strategy=strategy):
                folder = REFERENCES / "gpt-nano"
                job = self.compile(f"gpt-{strategy}", folder / "dynamo-train.onnx", folder / "accumulate.toml", axes, "--set", f"mesh.strategy={strategy}")
                data = folder / "data.npz"
                planned = {row["function"]: row for row in plan_of(job)["communication"] if row["phase"] == "host"}
                sizes = [4 * int(np.prod(p["shape"])) for p in json.loads(titan_job.run([job, "info", "--json"]))["parameters"]]
                pieces = [-(-size // BLOCK) for size in sizes]
                first = planned["initialize"]
                self.assertEqual((first["kind"], first["axes"], first["count"]), ("broadcast", list(axes), sum(pieces)))
                self.assertEqual(first["payload"] + first["wire"], sum(sizes) + sum(pieces))
                code, out, err = self.run_ranks(2, job, "profile", "--data", data, "--steps", 1, "--json", "--trace", self.scratch / "trace")
                self.assertEqual(code, 0, err)
                counted, = (row for row in json.loads(out)["communication"] if row["function"] == "initialize")
                self.assertEqual([counted[name] for name in ("count", "payload", "moved", "moved_all")],
                                 [first["count"], first["payload"], first["wire"], sum(sizes) + sum(pieces)])

                self.train(2, job, data, strategy, "--steps", 1)
                folder = next((self.scratch / strategy / "checkpoints").iterdir())
                files = [path.stat().st_size for path in folder.glob(shared)]
                blocks = sum(-(-size // BLOCK) for size in files)
                load = planned.get("load", {"count": 0, "payload": 0, "wire": 0})
                self.assertEqual((load["count"], load["payload"] + load["wire"]), (blocks, sum(files) + blocks))

    def test_one_rank_sends_nothing(self):
        self.assertEqual(plan_of(self.mlp({})[0])["communication"], [])


if __name__ == "__main__":
    ranks_test.main(__doc__)
