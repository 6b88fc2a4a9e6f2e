#!/usr/bin/env python3
"""precision.compute = "bf16": trains as well as f32, to the same bits however it is cut up or fused, and rounds where the interpreter does.

    check_precision.py --tools build/dev/bin [unittest's options]
"""
import numpy as np

import titan_job
import training_test
from training_test import REFERENCES, UNFUSED

BF16 = ("--set", "precision.compute=bf16")
MODELS = (("relu", "accumulate"), ("norm-gelu", "smoothing-ignore"), ("gpt-nano", "accumulate"), ("gpt-llama", "adamw"), ("gpt-left-padded", "sgd"), ("channel-norms", "accumulate"))
SEEDS, STEPS, LAST = range(5), 200, 20
# Without attention, whose sums in blocks round elsewhere. With momentum: the buffers are the gradients of the first step.
ROUNDED = (("relu", "sgd"), ("norm-gelu", "ignore-accumulate"), ("residual", "l1-sgd"), ("log-softmax", "sgd"), ("convolutions", "sgd"), ("sequence-norms", "sgd"))
# Units in the last place of bf16 at the largest element of a tensor: a sum in another order may round one value to its neighbour, and
# that is rare. What is not rounded at all is off everywhere.
MOST_ULPS, NEAR_ULPS, MOST_FAR = 1, 0.05, 0.1


def ulps(found, expected):
    """Distances of the elements."""
    largest = np.abs(expected).max()
    return np.abs(found.astype(np.float64) - expected) / 2.0 ** (np.floor(np.log2(largest)) - 7)


def wrong_roundings(found, expected):
    """The names of tensors that were not rounded as `expected`."""
    wrong = []
    for name, tensor in expected.items():
        distances = ulps(found[name], tensor)
        if distances.max() > MOST_ULPS or np.mean(distances > NEAR_ULPS) > MOST_FAR:
            wrong.append(f"{name}: up to {distances.max():.2f} ulp, {100 * np.mean(distances > NEAR_ULPS):.0f} % beyond {NEAR_ULPS}")
    return wrong


class Precision(training_test.TrainingTest):
    def test_threads_and_fusion_do_not_matter(self):
        for reference, recipe in MODELS:
            with self.subTest(reference=reference):
                fused = self.compile(f"{reference}-fused", reference, recipe, *BF16)
                single = self.compile(f"{reference}-single", reference, recipe, *BF16, *UNFUSED)
                one = self.train(fused, f"{reference}-1", reference, threads=1)
                self.assert_same_bits(self.train(fused, f"{reference}-2", reference), one)
                self.assert_same_bits(self.train(single, f"{reference}-single.run", reference), one)

    def test_states_are_f32_and_losses_near(self):
        for reference, recipe in MODELS:
            with self.subTest(reference=reference):
                narrow = self.train(self.compile(f"{reference}-16", reference, recipe, *BF16), f"{reference}-16.run", reference)
                wide = self.train(self.compile(f"{reference}-32", reference, recipe), f"{reference}-32.run", reference)
                self.assertEqual({name: t.dtype for name, t in narrow[1].items()}, {name: t.dtype for name, t in wide[1].items()})
                np.testing.assert_allclose(narrow[0], wide[0], rtol=0.02)
                self.assertNotEqual(narrow[0], wide[0])

    def test_a_target_without_bf16_rounds_alike(self):
        reference, recipe = "gpt-nano", "adamw"
        losses = [self.train(self.compile(arch, reference, recipe, *BF16, f"--arch={arch}"), f"{arch}.run", reference)[0]
                  for arch in ("native", "x86-64-v3")]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-2)

    def first_gradients(self, out):
        return titan_job.read_safetensors(self.scratch / out / "checkpoints" / "step-00000001" / "optimizer")

    def gradients_of_interpreter(self, reference, recipe):
        folder, out = REFERENCES / reference, f"{reference}-interpreter.run"
        titan_job.run([self.tools / "titan-run", "--eager", folder / "dynamo-train.onnx", "--recipe", folder / f"{recipe}.toml", *BF16,
                       "--precision=f32", "train", "--out", self.scratch / out, "--data", folder / "data.npz", "--steps", 1])
        return self.first_gradients(out)

    def gradients_of_job(self, name, reference, recipe, *options):
        self.train(self.compile(name, reference, recipe, *options), f"{name}.run", reference, 1, 2, "--gemm=generated")
        return self.first_gradients(f"{name}.run")

    def test_every_target_rounds_where_the_interpreter_does(self):
        for reference, recipe in ROUNDED:
            expected = self.gradients_of_interpreter(reference, recipe)
            self.assertTrue(expected)
            for arch in ("native", "x86-64-v3"):
                with self.subTest(reference=reference, arch=arch):
                    found = self.gradients_of_job(f"{reference}-{arch}", reference, recipe, *BF16, f"--arch={arch}")
                    self.assertEqual(found.keys(), expected.keys())
                    self.assertEqual(wrong_roundings(found, expected), [])
            with self.subTest(reference=reference, arch="one that never rounds"):
                found = self.gradients_of_job(f"{reference}-f32", reference, recipe)
                self.assertGreater(len(wrong_roundings(found, expected)), len(expected) // 2)

    def test_bf16_learns_as_f32_does(self):
        """The mean of the last losses lies within two standard deviations of those of five seeds in f32."""
        reference = "gpt-nano"
        fresh = ("--set", "model.init=fresh", "--set", f"train.steps={STEPS}")

        def ends(job, precision):
            return [np.mean(self.train(job, f"{precision}-{seed}.run", reference, STEPS, 2, "--set", f"train.seed={seed}")[0][-LAST:])
                    for seed in SEEDS]

        wide = ends(self.compile("wide", reference, "adamw", *fresh), "f32")
        narrow = ends(self.compile("narrow", reference, "adamw", *fresh, *BF16), "bf16")
        mean, deviation = np.mean(wide), np.std(wide, ddof=1)
        print(f"last {LAST} of {STEPS} losses: f32 {mean:.4f}, standard deviation {deviation:.4f}; bf16 {np.round(narrow, 4)}")
        self.assertLessEqual(abs(np.mean(narrow) - mean), 2 * deviation)
        # With the same seed, and so the same weights and data, precision is all that differs.
        self.assertLessEqual(np.abs(np.subtract(narrow, wide)).max(), 2 * deviation)


if __name__ == "__main__":
    training_test.main(__doc__)
