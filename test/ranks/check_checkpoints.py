#!/usr/bin/env python3
"""Checkpoints of jobs whose states are cut: saved by all ranks, killed in between, loaded on any other mesh.

    check_checkpoints.py --tools build/dev/bin [unittest's options]
"""
import json
import os
import resource
import signal

import ranks_test
from ranks_test import EXAMPLES, GONE, ranks_of, titan_job

STEPS = 8


class Checkpoints(ranks_test.RanksTest):
    def job(self, axes, strategy="ddp"):
        """examples/mlp for {axis: ranks}, in twelve microbatches a step however many ranks there are, and its data."""
        data = self.shared / "images.npz"
        if not data.exists():
            ranks_test.write_images(data, 512)
        name = "-".join([strategy, *(f"{axis}{ranks}" for axis, ranks in axes.items())])
        return self.compile(name, EXAMPLES / "mlp/mlp.onnx", EXAMPLES / "mlp/train.toml", axes, "--set", "batch.micro=4", "--set",
                            "batch.global=48", "--set", f"mesh.strategy={strategy}"), data

    def fsdp(self, ranks):
        return self.job({"shard": ranks}, "fsdp")

    def others(self):
        """Jobs of other meshes, by their number of ranks."""
        return {None: self.job({})[0], 3: self.fsdp(3)[0], 4: self.job({"replicate": 2, "shard": 2}, "hsdp")[0]}

    def newest(self, out):
        return self.scratch / out / "checkpoints" / max(name for name in self.checkpoints(out) if name.startswith("step-"))

    def said(self, ranks, *command):
        code, out, err = self.run_ranks(ranks, *command)
        self.assertEqual(code, 0, err)
        return out

    def rows(self, out):
        return titan_job.metrics_of(self.scratch / out)

    def test_a_killed_run_goes_on_on_any_mesh(self):
        job, data = self.fsdp(2)
        whole = self.train(2, job, data, "whole", "--steps", STEPS)
        process = self.start(2, job, "train", "--data", data, "--out", self.scratch / "killed", "--set", "checkpoint.every=1",
                             "--set", "checkpoint.keep=0", "--steps", 10000)
        self.wait_for_steps(process, "killed", 4)
        os.kill(ranks_of(process)[1], signal.SIGKILL)
        self.assertEqual(self.finish(process, GONE)[0], 5)
        start = self.scratch / "killed/checkpoints/step-00000003"
        titan_job.run([self.tools / "titan-ckpt", "verify", start])
        # Every rank wrote what it alone has.
        self.assertEqual(len(list((start / "model").glob("*.safetensors"))), 2)
        self.assertFalse((start / "model/model.safetensors.index.json").exists())

        # The same mesh: the run that was never killed, to the bit.
        resume = ["train", "--data", data, "--resume", start]
        self.said(2, job, *resume, "--out", self.scratch / "same", "--steps", STEPS)
        self.assertEqual([row["loss"] for row in self.rows("same")], whole[0][3:])
        self.assert_same((whole[0], self.result("same")[1]), whole)

        expected = self.said(2, job, "eval", "--ckpt", start, "--data", data, "--json")
        for ranks, other in self.others().items():
            with self.subTest(ranks=ranks):
                # An evaluation has the same bits on every mesh: so the same weights were loaded.
                self.assertEqual(self.said(ranks, other, "eval", "--ckpt", start, "--data", data, "--json"), expected)
                out = f"on-{ranks}"
                self.said(ranks, other, *resume, "--out", self.scratch / out, "--steps", STEPS)
                rows = self.rows(out)
                self.assertEqual([row["step"] for row in rows], list(range(4, STEPS + 1)))
                for row, loss in zip(rows, whole[0][3:]):
                    self.assertAlmostEqual(row["loss"], loss, delta=1e-4 * abs(loss))
                manifest = json.loads((self.newest(out) / "manifest.json").read_text())
                self.assertEqual(manifest["counters"]["samples"], 48 * STEPS)

    def test_what_one_rank_and_ddp_saved_is_loaded_cut(self):
        data = self.fsdp(2)[1]
        for name, ranks, job in (("one", None, self.job({})[0]), ("ddp", 2, self.job({"replicate": 2})[0])):
            self.said(ranks, job, "train", "--data", data, "--out", self.scratch / name, "--steps", 2)
            start = self.newest(name)
            expected = self.said(ranks, job, "eval", "--ckpt", start, "--data", data, "--json")
            for to in (2, 3):
                with self.subTest(name=name, to=to):
                    self.assertEqual(self.said(to, self.fsdp(to)[0], "eval", "--ckpt", start, "--data", data, "--json"), expected)

    def test_first_weights_and_init_are_those_of_one_rank(self):
        one, data = self.job({})
        expected = self.said(None, one, "eval", "--data", data, "--out", self.scratch / "none", "--json")
        for ranks in (2, 3):
            self.assertEqual(self.said(ranks, self.fsdp(ranks)[0], "eval", "--data", data, "--out", self.scratch / "none", "--json"),
                             expected)
        self.said(None, one, "train", "--data", data, "--out", self.scratch / "one", "--steps", 2)
        weights = self.newest("one") / "model"
        first = {}
        for ranks, job in ((None, one), (2, self.fsdp(2)[0])):
            self.said(ranks, job, "train", "--data", data, "--out", self.scratch / f"init-{ranks}", "--init", weights, "--steps", 1)
            first[ranks] = self.rows(f"init-{ranks}")[0]["loss"]
        self.assertAlmostEqual(first[2], first[None], delta=1e-6 * abs(first[None]))

    def test_a_full_disk_of_one_rank_is_named(self):
        job, data = self.fsdp(2)
        process = self.start(2, self.wrapper(job, 'trap "" XFSZ'), "train", "--data", data, "--out", self.scratch / "run",
                             "--steps", 10000)
        self.wait_for_steps(process, "run", 2)
        # From now on: what is shared between the ranks counts as a file too, and is larger.
        resource.prlimit(ranks_of(process)[1], resource.RLIMIT_FSIZE, (100_000, 100_000))
        process.send_signal(signal.SIGTERM)
        code, _, err = self.finish(process)
        self.assertEqual(code, 5, err)
        self.assert_told_once(err, "was not saved: rank 1: cannot write '", "File too large")
        self.assertEqual([name for name in self.checkpoints("run") if name.startswith("step-")], [])


if __name__ == "__main__":
    ranks_test.main(__doc__)
