#!/usr/bin/env python3
"""Whole data sets on ranks: evaluations, predictions and samples are those of one rank, bit by bit.

    check_evaluation.py --tools build/dev/bin [unittest's options]
"""
import json

import numpy as np

import ranks_test
from ranks_test import EXAMPLES, titan_job

SEQUENCE = 16


class Evaluation(ranks_test.RanksTest):
    def trained(self):
        """A checkpoint of one rank, which jobs of any mesh read."""
        job, data = self.mlp({})
        out = self.shared / "trained"
        if not out.exists():
            self.assertEqual(self.run_ranks(None, job, "train", "--data", data, "--out", out, "--steps", 10)[0], 0)
        return out

    def said(self, ranks, *command):
        code, out, err = self.run_ranks(ranks, *command)
        self.assertEqual(code, 0, err)
        return out

    def test_eval_on_any_number_of_ranks_and_samples(self):
        one, _ = self.mlp({})
        checkpoint = self.trained()
        jobs = {2: self.mlp({"replicate": 2})[0], 3: self.mlp({"replicate": 3}, 96)[0], 4: self.mlp({"replicate": 2, "shard": 2})[0]}
        for samples in (1, 16, 40, 100):  # batches of 16: one row, one batch, two and a half, six and a quarter
            data = self.scratch / f"{samples}.npz"
            ranks_test.write_images(data, samples, seed=samples)
            expected = self.said(None, one, "eval", "--out", checkpoint, "--data", data, "--json")
            self.assertEqual(json.loads(expected)["samples"], samples)
            for ranks, job in jobs.items():
                with self.subTest(samples=samples, ranks=ranks):
                    self.assertEqual(self.said(ranks, job, "eval", "--out", checkpoint, "--data", data, "--json"), expected)

    def test_evaluations_of_a_run(self):
        data = self.scratch / "eval.npz"
        ranks_test.write_images(data, 100, seed=3)
        options = ["--steps", 6, "--set", "train.eval_every=2", "--set", f"data.eval={data}"]
        job, images = self.mlp({"replicate": 2})
        self.train(2, job, images, "run", *options)
        rows = [json.loads(line) for line in (self.scratch / "run/metrics.jsonl").read_text().splitlines()]
        evaluations = [row for row in rows if "eval_loss" in row]
        self.assertEqual([row["step"] for row in evaluations], [2, 4, 6])
        # What one rank says of the same state.
        one, _ = self.mlp({})
        said = json.loads(self.said(None, one, "eval", "--out", self.scratch / "run", "--data", data, "--json"))
        self.assertEqual((said["loss"], said["accuracy"]), (evaluations[-1]["eval_loss"], evaluations[-1]["eval_accuracy"]))
        # Batches are counted on all ranks together.
        self.train(2, job, images, "some", *options, "--set", "train.eval_batches=3")
        ranks_test.write_images(self.scratch / "first.npz", 100, seed=3)
        arrays = dict(np.load(data))
        np.savez(self.scratch / "first.npz", **{name: array[:48] for name, array in arrays.items()})
        said = json.loads(self.said(None, one, "eval", "--out", self.scratch / "some", "--data", self.scratch / "first.npz", "--json"))
        rows = [json.loads(line) for line in (self.scratch / "some/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row for row in rows if "eval_loss" in row][-1]["eval_loss"], said["loss"])

    def test_predictions_are_in_order(self):
        checkpoint, data = self.trained(), self.scratch / "data.npz"
        ranks_test.write_images(data, 100, seed=5)
        files = {}
        for ranks, job in ((None, self.mlp({})[0]), (2, self.mlp({"replicate": 2})[0]), (3, self.mlp({"replicate": 3}, 96)[0])):
            files[ranks] = self.scratch / f"{ranks}.npz"
            said = self.said(ranks, job, "predict", "--out", checkpoint, "--data", data, "-o", files[ranks])
            self.assertEqual(said, f"100 samples -> {files[ranks]}\n")
        for ranks in (2, 3):
            self.assertEqual(files[ranks].read_bytes(), files[None].read_bytes())

    def test_a_sample_is_that_of_one_rank(self):
        options = ["--set", f"model.dims={{ seq = {SEQUENCE} }}", "--set", "batch.micro=2", "--set", "batch.global=4"]
        one = self.compile("char", EXAMPLES / "char/char.onnx", EXAMPLES / "char/train.toml", {}, *options)
        two = self.compile("char-2", EXAMPLES / "char/char.onnx", EXAMPLES / "char/train.toml", {"replicate": 2}, *options)
        text = self.scratch / "text.txt"
        text.write_text("static int count = 0;\n" * 100)
        out = self.scratch / "char.run"
        titan_job.run([one, "train", "--out", out, "--data", text, "--steps", 3])
        sample = ["sample", "--out", out, "--prompt", "static ", "--tokens", 12]
        self.assertEqual(self.said(2, two, *sample), self.said(None, one, *sample))


if __name__ == "__main__":
    ranks_test.main(__doc__)
