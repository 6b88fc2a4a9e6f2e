#!/usr/bin/env python3
"""A job on ranks trains as the same job on one: the same samples, the same gradients but for their rounding.

    check_losses.py --tools build/dev/bin [unittest's options]
"""
import json

import numpy as np

import ranks_test
from ranks_test import REFERENCES

STEPS = 40
BOUND = 1e-5  # relative, each loss: sums of microbatches in another order
BF16_BOUND = 1e-3  # where that makes a weight round to its neighbour


class Losses(ranks_test.RanksTest):
    def assert_close(self, found, expected):
        self.assertEqual(len(found), len(expected))
        np.testing.assert_allclose(found, expected, rtol=BOUND)

    def check(self, batch, meshes):
        job, data = self.mlp({}, batch)
        expected = self.train(None, job, data, "one", "--steps", STEPS)
        self.assertEqual(len(expected[0]), STEPS)
        for axes in meshes:
            with self.subTest(**axes):
                job, _ = self.mlp(axes, batch)
                out = "-".join(f"{axis}{n}" for axis, n in axes.items())
                found = self.train(int(np.prod(list(axes.values()))), job, data, out, "--steps", STEPS)
                self.assert_close(found[0], expected[0])
                self.assertEqual(found[1].keys(), expected[1].keys())

    def test_an_mlp_on_either_axis_and_on_both(self):
        self.check(64, [{"replicate": 2}, {"shard": 2}, {"replicate": 2, "shard": 2}, {"replicate": 4}])

    def test_an_mlp_on_three_ranks(self):
        self.check(96, [{"shard": 3}, {"replicate": 3}])

    def test_sums_with_each_microbatch_and_behind_some(self):
        # Four microbatches a rank.
        for axes, syncs in (({"replicate": 2}, ("mesh.sync=immediate", "mesh.sync_every=2")), ({"shard": 3}, ("mesh.sync=immediate", "mesh.sync_every=2")),
                            ({"replicate": 2, "shard": 2}, ("mesh.sync=immediate", "mesh.sync_every=1", "mesh.sync.shard=immediate"))):
            ranks = int(np.prod(list(axes.values())))
            alone, data = self.mlp({}, 64 * ranks)
            expected = self.train(None, alone, data, f"one-{ranks}", "--steps", 20)
            for sync in syncs:
                with self.subTest(sync=sync, **axes):
                    job, _ = self.mlp(axes, 64 * ranks, "--set", sync)
                    self.assert_close(self.train(ranks, job, data, f"{sync}-{ranks}", "--steps", 20)[0], expected[0])

    def test_the_last_microbatch_behind_its_loop(self):
        # Four microbatches a rank. The bits of a loop over all of them, and hardly more code: kernels are shared.
        for axes, sync in (({"replicate": 2}, ()), ({"replicate": 2}, ("mesh.sync_every=2",)), ({"shard": 2}, ("mesh.strategy=fsdp",))):
            with self.subTest(sync=sync, **axes):
                options = [word for key in sync for word in ("--set", key)]
                job, data = self.mlp(axes, 128, *options)
                whole, _ = self.mlp(axes, 128, *options, "--disable-pass=titan-schedule-peel-last-microbatch")
                self.assert_same(self.train(2, job, data, "peeled", "--steps", 5), self.train(2, whole, data, "whole", "--steps", 5))
                plan, of_whole = ranks_test.plan_of(job), ranks_test.plan_of(whole)
                # A bucket has the same tensors, in the order in which they are ready.
                of_both = [[row | {"source": sorted(row["source"].split(", "))} for row in each["communication"]] for each in (plan, of_whole)]
                self.assertCountEqual(*of_both)
                self.assertLessEqual(plan["functions"]["step"]["commands"], 1.02 * of_whole["functions"]["step"]["commands"])
                self.assertLessEqual(plan["kernels"], 1.2 * of_whole["kernels"])
                self.assertLessEqual(job.stat().st_size, 1.05 * whole.stat().st_size)

    def test_sums_of_parts_of_gradients(self):
        alone, data = self.mlp({}, 128)
        expected = self.train(None, alone, data, "one", "--steps", 20)[0]
        for strategy, sync in (("fsdp", "mesh.sync=immediate"), ("fsdp", "mesh.sync_every=2"), ("zero1", "mesh.sync=immediate"), ("zero2", "mesh.sync=auto")):
            with self.subTest(strategy=strategy, sync=sync):
                job, _ = self.mlp({"shard": 2}, 128, "--set", f"mesh.strategy={strategy}", "--set", sync)
                out = self.scratch / f"{strategy}-{sync}"
                code, _, err = self.run_ranks(2, job, "train", "--out", out, "--data", data, "--steps", 20)
                self.assertEqual(code, 0, err)
                self.assert_close(ranks_test.titan_job.losses_of(out), expected)

    def test_one_microbatch_a_rank(self):
        self.check(32, [{"replicate": 2}])

    def test_the_loss_is_the_mean_over_all_targets_of_the_step(self):
        # Rank 1 has a third of the valid targets that rank 0 has: a mean of the ranks' means would be off by far.
        data = self.shared / "ignored.npz"
        ranks_test.write_images(data, 512)
        arrays = dict(np.load(data))
        arrays["targets"][[i for i in range(512) if i // 16 % 2 and i % 16 > 4]] = -100
        np.savez(data, **arrays)
        alone, _ = self.mlp({}, 64, "--set", "data.shuffle=false")
        both, _ = self.mlp({"replicate": 2}, 64, "--set", "data.shuffle=false")
        expected = self.train(None, alone, data, "one", "--steps", 10)
        self.assert_close(self.train(2, both, data, "two", "--steps", 10)[0], expected[0])
        # Also where each microbatch's gradients are summed: the count is that of the step.
        each, _ = self.mlp({"replicate": 2}, 64, "--set", "data.shuffle=false", "--set", "mesh.sync=immediate")
        self.assert_close(self.train(2, each, data, "each", "--steps", 10)[0], expected[0])

    def test_dropout_draws_by_the_global_microbatch(self):
        folder = REFERENCES / "gpt-nano"
        model = ranks_test.training_test.GPT_DROPOUT / "dynamo-train.onnx"
        jobs = {ranks: self.compile(f"gpt-{ranks}", model, folder / "accumulate.toml", {"replicate": ranks} if ranks > 1 else {})
                for ranks in (1, 2, 4)}
        jobs["each"] = self.compile("gpt-each", model, folder / "accumulate.toml", {"shard": 2}, "--set", "mesh.sync=immediate")
        expected = self.train(None, jobs[1], folder / "data.npz", "one", "--steps", 20)
        for name, ranks in ((2, 2), (4, 4), ("each", 2)):
            with self.subTest(job=name):
                found = self.train(ranks, jobs[name], folder / "data.npz", f"on-{name}", "--steps", 20)
                np.testing.assert_allclose(found[0], expected[0], rtol=5e-5)

    def test_the_memory_plan_holds_on_ranks(self):
        job, data = self.mlp({"replicate": 2})
        plain = self.train(2, job, data, "plain", "--steps", 5)
        self.assert_same(self.train(2, job, data, "poisoned", "--steps", 5, "--poison"), plain)
        nested, _ = self.mlp({"replicate": 2}, 128, "--set", "mesh.sync_every=2")
        plain = self.train(2, nested, data, "nested", "--steps", 5)
        self.assert_same(self.train(2, nested, data, "nested-poisoned", "--steps", 5, "--poison"), plain)

    def test_threads_do_not_matter_on_ranks(self):
        job, data = self.mlp({"replicate": 2})
        one = self.train(2, job, data, "one", "--steps", 10, "--threads", 1)
        self.assert_same(self.train(2, job, data, "two", "--steps", 10, "--threads", 2), one)

    def test_a_bf16_mlp(self):
        alone, data = self.mlp({}, 64, "--set", "precision.compute=bf16")
        both, _ = self.mlp({"replicate": 2}, 64, "--set", "precision.compute=bf16")
        expected = self.train(None, alone, data, "one", "--steps", 10)
        found = self.train(2, both, data, "two", "--steps", 10)
        np.testing.assert_allclose(found[0], expected[0], rtol=BF16_BOUND)

    def test_a_metrics_line_counts_the_samples_of_all_ranks(self):
        job, data = self.mlp({"replicate": 2})
        self.train(2, job, data, "two", "--steps", 3)
        rows = ranks_test.titan_job.metrics_of(self.scratch / "two")
        self.assertEqual([row["samples"] for row in rows], [64] * 3)
        manifest = json.loads((self.scratch / "two/checkpoints/step-00000003/manifest.json").read_text())
        self.assertEqual(manifest["counters"]["samples"], 3 * 64)

    def test_a_run_goes_on_with_another_number_of_ranks(self):
        jobs = {ranks: self.mlp({"replicate": ranks} if ranks > 1 else {}, 96)[0] for ranks in (1, 2, 3)}
        data = self.mlp({}, 96)[1]
        expected = self.train(None, jobs[1], data, "whole", "--steps", 24)
        for steps, ranks in ((6, 2), (12, 1), (18, 3), (24, 2)):
            found = self.train(ranks if ranks > 1 else None, jobs[ranks], data, "parts", "--steps", steps)
        self.assert_close(found[0], expected[0])


if __name__ == "__main__":
    ranks_test.main(__doc__)
