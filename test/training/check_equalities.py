#!/usr/bin/env python3
"""What must not change a run: each test trains one model in two ways and compares.

    check_equalities.py --tools build/dev/bin [unittest's options]
"""
import json
import os
from unittest import mock

import numpy as np

import titan_job
import training_test
from compare import compare_losses
from training_test import GPT_DROPOUT, REFERENCES, UNFUSED

STAGES = ["import", "differentiate", "optimize", "accumulate", "shard", "schedule", "lower", "plan"]
# Bounds of what only rounds differently, relative to the largest element of a tensor, after 20 steps.
MICROBATCH_BOUND = 2e-5
EAGER_BOUND = 2e-5


CENTRED = """
module {
  titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  func.func @model(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
    %sum = titan.reduce sum %x [0] : tensor<4x3xf32> to tensor<3xf32>
    %quarter = titan.constant dense<0.25> : tensor<3xf32>
    %mean = titan.mul %sum, %quarter : tensor<3xf32>
    %means = titan.broadcast %mean [1] : tensor<3xf32> to tensor<4x3xf32>
    %centred = titan.sub %x, %means : tensor<4x3xf32>
    %scales = titan.broadcast %w [1] : tensor<3xf32> to tensor<4x3xf32>
    %y = titan.mul %centred, %scales : tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}
"""

LOSS_INSIDE = """
module {
  titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 2.0 : f64, 0.0 : f64>}
  func.func @model(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<4x3xf32> {titan.input = "x"})
      -> (tensor<f32> {titan.output = "loss"}, TYPE {titan.output = "OUTPUT"}) {
    %scales = titan.broadcast %w [1] : tensor<3xf32> to tensor<4x3xf32>
    %y = titan.mul %x, %scales : tensor<4x3xf32>
    %squares = titan.mul %y, %y : tensor<4x3xf32>
    %loss = titan.reduce sum %squares [0, 1] : tensor<4x3xf32> to tensor<f32>
    return %loss, %OUTPUT : tensor<f32>, TYPE
  }
}
"""


def high_water(job):
    return json.loads(titan_job.run([job, "plan", "--json"]))["memory"]["high_water"]


class Equalities(training_test.TrainingTest):
    def assert_close(self, found, expected, bound):
        self.assertEqual({name: t.shape for name, t in found.items()}, {name: t.shape for name, t in expected.items()})
        for name, tensor in expected.items():
            error = np.abs(found[name].astype(np.float64) - tensor).max() / max(np.abs(tensor).max(), 1e-3)
            self.assertLessEqual(error, bound, name)

    def test_one_batch_is_k_microbatches(self):
        for reference, recipe in (("relu", "accumulate"), ("sequence", "adamw"), ("gpt-course", "accumulate")):
            whole = None
            for micro in (16, 8, 2, 1):
                job = self.compile(f"{reference}-{micro}", reference, recipe, "--set", f"batch.micro={micro}")
                losses, state = self.train(job, f"{reference}-{micro}.run", reference)
                whole = whole or (losses, state)
                with self.subTest(reference=reference, micro=micro):
                    np.testing.assert_allclose(losses, whole[0], rtol=MICROBATCH_BOUND)
                    self.assert_close(state, whole[1], MICROBATCH_BOUND)

    def test_evaluation_weighs_classes_as_training_does(self):
        """The loss of eval, the last batch of which has samples less, is the weighted mean of what predict gives."""
        weights, data = np.array([0.2, 1, 2.5]), REFERENCES / "segmentation" / "data.npz"
        for recipe, smoothing, ignored in (("sgd", 0, -100), ("smoothed", 0.2, 1)):
            with self.subTest(recipe=recipe):
                self.check_weighed_evaluation(recipe, weights, smoothing, ignored, data)

    def check_weighed_evaluation(self, recipe, weights, smoothing, ignored, data):
        job = self.compile("weighed", "segmentation", recipe, "--set", f"loss.class_weights={weights.tolist()}", "--set", "batch.micro=3",
                           "--set", "batch.global=6", export="dynamo-optimized")
        run = self.scratch / f"{recipe}.run"
        titan_job.train(job, run, data, 2)
        titan_job.run([job, "predict", "--out", run, "--data", data, "-o", self.scratch / "scores.npz"])
        (scores,), targets = np.load(self.scratch / "scores.npz").values(), np.load(data)["targets"]
        scores = np.moveaxis(scores.astype(np.float64), 1, -1)
        losses = np.log(np.exp(scores).sum(-1, keepdims=True)) - scores
        picked = np.take_along_axis(losses, targets[..., None], -1)[..., 0]
        losses = (1 - smoothing) * weights[targets] * picked + smoothing / 3 * (losses * weights).sum(-1)
        counted = targets != ignored
        found = json.loads(titan_job.run([job, "eval", "--json", "--out", run, "--data", data]))
        self.assertAlmostEqual(found["loss"], losses[counted].sum() / weights[targets[counted]].sum(), delta=1e-5)

    def test_samples_that_depend_on_each_other_are_evaluated_in_full_batches(self):
        """Padding would change what a model computes that centres its batch."""
        (self.scratch / "centred.mlir").write_text(CENTRED)
        (self.scratch / "centred.toml").write_text('batch = { micro = 4, global = 4 }\nloss = { kind = "mse" }\noptimizer = { lr = 0.0 }\n')
        job, run, data = (self.scratch / f"centred{suffix}" for suffix in ("", ".run", ".npz"))
        titan_job.compile_job(self.tools, self.scratch / "centred.mlir", self.scratch / "centred.toml", job)
        x, targets = np.random.default_rng(1).standard_normal((2, 10, 3)).astype(np.float32)
        np.savez(data, x=x, targets=targets)
        titan_job.train(job, run, data, 1)
        found = json.loads(titan_job.run([job, "eval", "--json", "--out", run, "--data", data]))
        batches = x[:8].reshape(2, 4, 3)
        centred = (batches - batches.mean(1, keepdims=True)).reshape(8, 3)
        self.assertAlmostEqual(found["loss"], ((centred - targets[:8]) ** 2).mean(), delta=1e-5)
        self.assertEqual(found["samples"], 8)
        self.assertNotIn("accuracy", found)  # which a loss without classes has not
        told = titan_job.notes([job, "predict", "--out", run, "--data", data, "-o", self.scratch / "centred-outputs.npz"])
        self.assertIn("the outputs of the last 2 samples are those beside rows of zeros", told)

    def test_predictions_have_a_row_for_each_sample(self):
        """Of a model that computes its loss, the other outputs are written; without any it is refused."""
        x = np.arange(30, dtype=np.float32).reshape(10, 3)
        np.savez(self.scratch / "inside.npz", x=x)
        (self.scratch / "inside.toml").write_text('batch = { micro = 4, global = 4 }\nloss = { kind = "output" }\n')

        def predict(output, type):
            model, job = self.scratch / f"inside-{output}.mlir", self.scratch / f"inside-{output}"
            model.write_text(LOSS_INSIDE.replace("OUTPUT", output).replace("TYPE", type))
            titan_job.compile_job(self.tools, model, self.scratch / "inside.toml", job)
            return titan_job.notes([job, "predict", "--data", self.scratch / "inside.npz", "-o", self.scratch / "inside-outputs.npz"])

        self.assertIn("left out, without the 4 samples of a batch in the first dim: 'loss' of shape []", predict("y", "tensor<4x3xf32>"))
        outputs = np.load(self.scratch / "inside-outputs.npz")
        self.assertEqual(outputs.files, ["y"])
        np.testing.assert_array_equal(outputs["y"], 2 * x)
        with self.assertRaisesRegex(titan_job.Failure, r"no output has the 4 samples of a batch in its first dim: 'loss' of shape \[\], 'w' of shape \[3\]"):
            predict("w", "tensor<3xf32>")

    def test_pieces_of_the_loss_do_not_matter(self):
        """Where classes are few and where they are many, with and without weights: what is made of the logits is cut, and nothing behind it."""
        weights = [0.5, 1, 2, 0, 1.5]
        for reference, recipe, options in (("convolutions", "adamw", ()), ("gpt-course", "adamw", ()), ("recurrent", "adamw", ()),
                                           ("convolutions", "sgd", (f"loss.class_weights={weights}", "loss.label_smoothing=0.1"))):
            settings = [word for option in options for word in ("--set", option)]
            whole = self.compile(f"{reference}-whole", reference, recipe, *settings)
            cut = self.compile(f"{reference}-cut", reference, recipe, *settings, "--set", "memory.loss_chunks=4")
            with self.subTest(reference=reference, recipe=recipe):
                losses, state = self.train(whole, f"{recipe}-{reference}-whole.run", reference, 20, 2)
                found = self.train(cut, f"{recipe}-{reference}-cut.run", reference, 20, 2)
                np.testing.assert_allclose(found[0], losses, rtol=MICROBATCH_BOUND)
                self.assert_close(found[1], state, MICROBATCH_BOUND)

    def test_threads_do_not_matter(self):
        for reference, recipe in (("relu", "cosine-clip"), ("norm-gelu", "smoothing-ignore"), ("residual", "mse-clip")):
            job = self.compile(reference, reference, recipe)
            with self.subTest(reference=reference):
                one = self.train(job, f"{reference}-1", reference, 20, 1)
                self.assert_same_bits(self.train(job, f"{reference}-2", reference, 20, 2), one)

    def test_threads_do_not_matter_to_a_gpt_with_dropout(self):
        for export in ("dynamo-train", "legacy-train"):
            with self.subTest(export=export):
                job = self.compile(f"gpt-{export}", "gpt-nano", "accumulate", export=export, models=GPT_DROPOUT)
                one = self.train(job, f"{export}-1", "gpt-nano", 20, 1)
                self.assert_same_bits(self.train(job, f"{export}-2", "gpt-nano", 20, 2), one)

    def test_fusion_does_not_matter_to_a_gpt(self):
        for reference, models in (("gpt-nano", GPT_DROPOUT), ("gpt-course", None), ("gpt-llama", None), ("gpt-masked", None)):
            with self.subTest(reference=reference):
                fused = self.compile(f"{reference}-fused", reference, "adamw", models=models)
                single = self.compile(f"{reference}-single", reference, "adamw", *UNFUSED, models=models)
                expected = self.train(fused, f"{reference}-fused.run", reference, 20, 2)
                self.assert_same_bits(self.train(single, f"{reference}-single.run", reference, 20, 2), expected)

    def test_recomputation_does_not_matter_to_a_gpt(self):
        """A ladder of limits: no job is larger than its limit, none trains to other bits; what cannot be met is refused."""
        for reference, models in (("gpt-nano", GPT_DROPOUT), ("gpt-llama", None)):
            free = self.compile(f"{reference}-free", reference, "accumulate", models=models)
            expected = self.train(free, f"{reference}-free.run", reference)
            for share in (0.95, 0.87, 0.8):
                with self.subTest(reference=reference, share=share):
                    name, limit = f"{reference}-{share}", int(share * high_water(free))
                    job = self.compile(name, reference, "accumulate", "--set", f"memory.limit={limit}", models=models)
                    self.assertLessEqual(high_water(job), limit)
                    self.assert_same_bits(self.train(job, f"{name}.run", reference), expected)
            with self.assertRaisesRegex(titan_job.Failure, "exit 1 (.|\n)*memory.limit is .* the smallest plan found needs"):
                self.compile("refused", reference, "accumulate", "--set", "memory.limit=50000", models=models)

    def test_a_limit_of_full_recomputation_is_met(self):
        for reference, recipe in (("channel-norms", "sgd"), ("convolutions", "adamw"), ("tied-sequence", "mse-adamw")):
            with self.subTest(reference=reference):
                free = self.compile(f"{reference}-free", reference, recipe)
                full = self.compile(f"{reference}-full", reference, recipe, "--set", "memory.remat=full")
                least = min(high_water(free), high_water(full))
                self.assertEqual(high_water(full), least)
                limited = self.compile(f"{reference}-limited", reference, recipe, "--set", f"memory.limit={least}")
                self.assertLessEqual(high_water(limited), least)

    def test_token_files_train_as_arrays_do(self):
        job = self.compile("tokens", "gpt-nano", "adamw")
        expected = self.train(job, "arrays.run", "gpt-nano")
        data = np.load(REFERENCES / "gpt-nano" / "data.npz")
        text = np.append(data["ids"].reshape(-1), data["targets"].reshape(-1)[-1])
        for name, dtype in (("tokens.txt", np.uint8), ("tokens.bin", np.uint16)):
            with self.subTest(file=name):
                (self.scratch / name).write_bytes(text.astype(dtype).tobytes())
                out = self.scratch / f"{name}.run"
                rows = titan_job.train(job, out, self.scratch / name, 20)
                self.assertEqual(rows[0]["tokens"], 8 * data["ids"].shape[1])
                self.assert_same_bits(([row["loss"] for row in rows], titan_job.checkpoint(out, 20)), expected)

    def test_token_files_mask_nothing(self):
        job = self.compile("masked", "gpt-masked", "adamw")
        arrays = dict(np.load(REFERENCES / "gpt-nano" / "data.npz"))
        text = np.append(arrays["ids"].reshape(-1), arrays["targets"].reshape(-1)[-1])
        np.savez(self.scratch / "ones.npz", attention_mask=np.ones_like(arrays["ids"]), **arrays)
        (self.scratch / "tokens.txt").write_bytes(text.astype(np.uint8).tobytes())
        losses = [[row["loss"] for row in titan_job.train(job, self.scratch / f"{name}.run", self.scratch / name, 10)]
                  for name in ("ones.npz", "tokens.txt")]
        self.assertEqual(losses[0], losses[1])

    def test_the_same_input_compiles_to_the_same_bytes(self):
        with mock.patch.dict(os.environ, TITAN_CACHE=""):  # kept code would be the same
            jobs = [self.compile(name, "residual", "mse-clip") for name in ("first/job", "second/job")]
        self.assertEqual(jobs[0].read_bytes(), jobs[1].read_bytes())

    def test_a_printed_stage_continues_to_the_same_bytes(self):
        folder = REFERENCES / "norm-gelu"
        expected = self.compile("job", "norm-gelu", "smoothing-ignore").read_bytes()
        for stage in STAGES:
            with self.subTest(stage=stage):
                printed, job = self.scratch / f"{stage}.mlir", self.scratch / stage / "job"
                job.parent.mkdir()
                titan_job.run([self.tools / "titan-compile", folder / "dynamo-train.onnx", "--recipe",
                               folder / "smoothing-ignore.toml", f"--emit={stage}", "-o", printed])
                titan_job.run([self.tools / "titan-compile", printed, "-o", job, "--weights-dir", folder])
                self.assertEqual(job.read_bytes(), expected)

    def test_job_then_interpreter_then_job(self):
        """One run directory, three programs in turn: the same names, shapes and layouts, values within EAGER_BOUND."""
        reference, recipe = "relu", "cosine-clip"
        folder = REFERENCES / reference
        job = self.compile("job", reference, recipe, export="legacy-eval")
        alone = self.train(job, "alone", reference, 18)
        self.train(job, "mixed", reference, 6)
        titan_job.run([self.tools / "titan-run", "--eager", folder / "legacy-eval.onnx", "--recipe", folder / f"{recipe}.toml",
                       "--engine=reference", "train", "--out", self.scratch / "mixed", "--data", folder / "data.npz",
                       "--steps", 12])
        losses, state = self.train(job, "mixed", reference, 18)
        np.testing.assert_allclose(losses, alone[0], rtol=EAGER_BOUND)
        self.assert_close(state, alone[1], EAGER_BOUND)

    def test_interpreter_has_pytorchs_losses_beside_every_mask(self):
        """Queries without a key: the interpreter, too, loses the scores that f32 loses beside a number."""
        folder, out = REFERENCES / "gpt-left-padded", self.scratch / "eager"
        titan_job.run([self.tools / "titan-run", "--eager", folder / "dynamo-train.onnx", "--recipe", folder / "sgd.toml", "--precision=f32",
                       "train", "--out", out, "--data", folder / "data.npz"])
        rows = titan_job.metrics_of(out)
        expected = json.loads((folder / "reference.json").read_text())["recipes"]["sgd"]["f32"]
        self.assertEqual(compare_losses(rows, expected), [])

    def test_an_import_trains_as_init_does(self):
        """Weights of another run, as a file, a Hugging Face folder and in bf16: `import` and `train` have the bits of `train --init`."""
        job = self.compile("job", "relu", "cosine-clip")
        self.train(job, "source", "relu", 5)
        checkpoint, ckpt = self.scratch / "source" / "checkpoints" / "step-00000005", self.tools / "titan-ckpt"
        ways = {"file.safetensors": [], "hf": ["--hf"], "half.safetensors": ["--dtype", "bf16"]}
        for way, options in ways.items():
            weights = self.scratch / way
            titan_job.run([ckpt, "export", checkpoint, "-o", weights, *options])
            expected = self.train(job, f"{way}-init", "relu", 20, 2, "--init", weights)
            for target in (["--job", job], ["--like", checkpoint]):
                with self.subTest(way=way, target=target[0]):
                    out = self.scratch / f"{way}{target[0]}"
                    titan_job.run([ckpt, "import", weights, "-o", out, *target])
                    titan_job.run([ckpt, "verify", out])
                    self.assert_same_bits(self.train(job, out.name, "relu", 20), expected)
                    end = "checkpoints/step-00000020"
                    self.assertEqual(titan_job.run([ckpt, "diff", self.scratch / f"{way}-init" / end, out / end]).count("\n"), 1)
                    manifest = json.loads((out / end / "manifest.json").read_text())
                    self.assertEqual(manifest["init"]["source"], str(weights))


if __name__ == "__main__":
    training_test.main(__doc__)
