#!/usr/bin/env python3
"""The larger examples as their pages tell: compiled from the structure; `char` also trained on the machine's text, sampled. Short
windows and few steps; scripts/demo trains the real thing.

    check_examples.py --tools build/dev/bin [unittest's options]
"""
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import titan_job
import training_test

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEPS, LENGTH, BATCH = 40, 32, 4


class Char(training_test.ToolsTest):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.scratch = Path(temporary.name)
        cls.job, cls.out = cls.scratch / "char", cls.scratch / "run"
        titan_job.run([EXAMPLES / "char/make_text", cls.scratch, 300000])
        titan_job.compile_job(cls.tools, EXAMPLES / "char/char.onnx", EXAMPLES / "char/train.toml", cls.job,
                              "--set", f"model.dims={{ seq = {LENGTH} }}", "--set", f"batch.micro={BATCH}", "--set", f"batch.global={BATCH}")
        cls.rows = titan_job.train(cls.job, cls.out, cls.scratch / "train.txt", STEPS)

    def sample(self, *options):
        done = subprocess.run([self.job, "sample", "--out", self.out, *map(str, options)], capture_output=True, check=True)
        return done.stdout

    def test_the_text_is_the_same_each_time(self):
        other = self.scratch / "again"
        titan_job.run([EXAMPLES / "char/make_text", other, 300000])
        for name in ("train.txt", "eval.txt"):
            self.assertEqual((other / name).read_bytes(), (self.scratch / name).read_bytes())
        self.assertLessEqual((other / "train.txt").stat().st_size, 300000)

    def test_it_learns(self):
        losses = [row["loss"] for row in self.rows]
        self.assertEqual([row["tokens"] for row in self.rows], [BATCH * LENGTH] * STEPS)
        self.assertAlmostEqual(losses[0], np.log(256), delta=0.5)  # fresh weights know nothing
        self.assertLess(np.mean(losses[-5:]), losses[0] - 1)

    def test_evaluation_is_in_bytes(self):
        said = json.loads(titan_job.run([self.job, "eval", "--out", self.out, "--data", self.scratch / "eval.txt", "--json"]))
        self.assertEqual(said["step"], STEPS)
        self.assertAlmostEqual(said["perplexity"], np.exp(said["loss"]), delta=1e-3 * said["perplexity"])
        self.assertLess(said["loss"], np.log(256))

    def test_a_sample_continues_its_prompt(self):
        text = self.sample("--prompt", "static int ", "--tokens", LENGTH)
        self.assertTrue(text.startswith(b"static int "), text)
        self.assertEqual(len(text), len("static int ") + LENGTH + 1)
        self.assertEqual(text, self.sample("--prompt", "static int ", "--tokens", LENGTH, "--threads", 1))
        self.assertNotEqual(text, self.sample("--prompt", "static int ", "--tokens", LENGTH, "--seed", 1))

    def test_greedy_sampling_is_the_argmax_of_predict(self):
        prompt = (self.scratch / "train.txt").read_bytes()[:LENGTH]
        (self.scratch / "prompt.txt").write_bytes(prompt)
        titan_job.run([self.job, "predict", "--out", self.out, "--data", self.scratch / "prompt.txt", "-o", self.scratch / "out.npz"])
        (logits,) = np.load(self.scratch / "out.npz").values()
        ids = " ".join(str(byte) for byte in prompt)
        said = self.sample("--ids", "--prompt", ids, "--tokens", 1, "--temperature", 0).split()
        self.assertEqual(int(said[-1]), int(logits[0, -1].argmax()))

    def test_the_profile_adds_up_to_the_step(self):
        said = json.loads(titan_job.run([self.job, "profile", "--steps", 2, "--json", "--data", self.scratch / "train.txt",
                                         "--trace", self.scratch / "trace.json"]))
        groups = {group["name"]: group["seconds_per_step"] for group in said["groups"]}
        self.assertAlmostEqual(sum(groups.values()), said["kernel_seconds_per_step"], delta=1e-9)
        self.assertAlmostEqual(sum(m["seconds_per_step"] for m in said["modules"]), said["kernel_seconds_per_step"], delta=1e-9)
        self.assertLessEqual(said["kernel_seconds_per_step"], said["profiled_seconds_per_step"])
        for group in ("products", "attention", "embedding", "norms", "loss", "optimizer"):
            self.assertIn(group, groups)


class Large(training_test.ToolsTest):
    """Compiled, and what they need is said; training takes more than a test has."""

    def compiled(self, name, *options):
        """(parameters, their names, FLOP of a step)"""
        with tempfile.TemporaryDirectory() as temporary:
            job = Path(temporary) / name
            titan_job.compile_job(self.tools, EXAMPLES / f"{name}/{name}.onnx", EXAMPLES / f"{name}/train.toml", job, *options)
            said = json.loads(titan_job.run([job, "info", "--json"]))
            plan = json.loads(titan_job.run([job, "plan", "--json"]))
            return said["parameter_count"], [entry["name"] for entry in said["parameters"]], plan["functions"]["step"]["flops"]

    def test_gpt2(self):
        count, _, flops = self.compiled("gpt2")
        self.assertEqual(count, 124475904)
        self.assertGreater(flops, 8 * 6 * 123e6 * 4 * 256)

    def test_resnet18(self):
        count, names, flops = self.compiled("resnet18")
        self.assertEqual(count, 11186148)
        self.assertIn("layer4.0.downsample.1.weight", names)
        self.assertIn("layer4.0.downsample.1.num_batches_tracked", names)
        self.assertEqual(len(names), 20 + 20 * 5 + 2)  # convolutions, norms with their buffers, the classifier
        # 1.11 GFLOP forward for an image, and as much for each of two gradients; norms and the update are little beside them.
        self.assertAlmostEqual(flops / (3 * 32 * 1.11e9), 1, delta=0.01)

    def test_llama(self):
        count, names, flops = self.compiled("llama", "--target=cuda")
        self.assertEqual(count, 1235814400)
        # PyTorch's names, which its state_dict has.
        self.assertIn("blocks.15.attention.key.weight", names)
        self.assertIn("norm.weight", names)
        self.assertEqual(len(names), 16 * 9 + 2)
        self.assertGreater(flops, 6 * 1.235e9 * 32 * 2048)


if __name__ == "__main__":
    training_test.main(__doc__)
