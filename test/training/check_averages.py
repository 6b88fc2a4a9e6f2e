#!/usr/bin/env python3
"""Moving averages of the weights: against NumPy in f64, beside a run without them, over a resume, on ranks, in evaluations.

Profiles of the first class follow each update, those of the second are moved by functions of their own.

    check_averages.py --tools build/dev/bin [unittest's options]
"""
import json
from typing import NamedTuple

import numpy as np

import titan_job
import training_test
from training_test import REFERENCES

DATA = REFERENCES / "relu" / "data.npz"
BOUND = 5e-7  # of an average, relative to the largest element of its tensor: a few roundings of f32
EAGER_BOUND = 2e-5


class Profile(NamedTuple):
    """An entry of ema.profiles."""
    decay: float
    warmup: bool = False
    every: int = 1

    def recipe(self):
        return f"{{ decay = {self.decay}, warmup = {str(self.warmup).lower()}, every = {self.every} }}"

    def average(self, weights):
        """{name: f64} after the last update, from the trained weights after each: torch.optim.swa_utils.AveragedModel with multi_avg_fn
        get_ema_multi_avg_fn(decay), which copies first, on every k-th update with the decay of k."""
        average = None
        for n, new in enumerate(weights):
            if (n + 1) % self.every != 0:
                continue
            decay = (min(self.decay, (1 + n) / (10 + n)) if self.warmup else self.decay) ** self.every
            average = {name: (average[name] if average else tensor.astype(np.float64)) for name, tensor in new.items()}
            average = {name: e + (1 - decay) * (new[name] - e) for name, e in average.items()}
        return average


class AveragesTest(training_test.TrainingTest):
    """Jobs with `profiles`, and what a run left of them."""
    profiles = {}

    def ema(self):
        return f"ema.profiles={{ {', '.join(f'{name} = {profile.recipe()}' for name, profile in self.profiles.items())} }}"

    def job(self, name, *options, recipe="cosine-clip"):
        return self.compile(name, "relu", recipe, "--set", self.ema(), *options)

    def run_of(self, job, out, steps, *options, ranks=None, data=DATA):
        launcher = [] if ranks is None else [self.tools / "titan-run", "-n", ranks]
        threads = ["--threads", 2] if ranks is None else ["--threads", 1]
        titan_job.run([*launcher, job, "train", "--out", self.scratch / out, "--data", data, "--steps", steps, *threads, *options])
        return self.scratch / out

    def folder(self, run, step, folder):
        path = run / "checkpoints" / f"step-{step:08d}" / folder
        self.assertTrue(path.is_dir(), path)
        return titan_job.read_safetensors(path)

    def assert_averages(self, run, steps, trained=None, applied=None):
        """Of a run that kept the checkpoint of every step; `applied`: the steps that were updates, where not all were."""
        weights = [self.folder(run, step, "model") for step in applied or range(1, steps + 1)]
        if trained is not None:
            weights = [{name: tensors[name] for name in trained} for tensors in weights]
        model = self.folder(run, steps, "model")
        for profile in self.profiles:
            expected = self.profiles[profile].average(weights)
            found = self.folder(run, steps, f"ema-{profile}")
            self.assertEqual(found.keys(), model.keys())
            for name in found.keys() - expected.keys():
                self.assertEqual(found[name].tobytes(), model[name].tobytes(), f"{profile}: {name} is no copy")
            for name, tensor in expected.items():
                error = np.abs(found[name] - tensor).max() / np.abs(tensor).max()
                self.assertLessEqual(error, BOUND, f"{profile}: {name}")
                moved = np.abs(tensor - weights[-1][name]).max() / np.abs(tensor).max()
                self.assertGreater(moved, 20 * BOUND, f"{profile}: {name} hardly differs from the weights")

    def assert_same_state(self, run, other, steps):
        for folder in ("model", "optimizer", *(f"ema-{profile}" for profile in self.profiles)):
            self.assert_same_tensors(self.folder(run, steps, folder), self.folder(other, steps, folder), f"{folder}/")

    EVERY = ["--set", "checkpoint.every=1", "--set", "checkpoint.keep=0"]

    def evaluation(self, job, run, *options):
        return json.loads(titan_job.run([job, "eval", "--json", "--out", run, "--data", DATA, *options]))["loss"]

    def eager(self, out, steps):
        folder = REFERENCES / "relu"
        titan_job.run([self.tools / "titan-run", "--eager", folder / "dynamo-train.onnx", "--recipe", folder / "cosine-clip.toml",
                       "--engine=reference", "--set", self.ema(), "train", "--out", self.scratch / out, "--data", DATA, "--steps", steps])
        return self.scratch / out

    def assert_the_reference_engine_agrees(self, steps):
        eager, compiled = self.eager("eager", steps), self.run_of(self.job("job"), "run", steps)
        for profile in self.profiles:
            found, expected = self.folder(eager, steps, f"ema-{profile}"), self.folder(compiled, steps, f"ema-{profile}")
            self.assertEqual(found.keys(), expected.keys())
            for name, tensor in expected.items():
                self.assertLessEqual(np.abs(found[name] - tensor).max() / np.abs(tensor).max(), EAGER_BOUND, f"{profile}: {name}")

    def assert_nothing_else_changes(self):
        with_averages = self.run_of(self.job("with"), "with.run", 20)
        without = self.run_of(self.compile("without", "relu", "cosine-clip"), "without.run", 20)
        self.assertEqual(titan_job.losses_of(with_averages), titan_job.losses_of(without))
        for folder in ("model", "optimizer"):
            self.assert_same_tensors(self.folder(with_averages, 20, folder), self.folder(without, 20, folder))

    def assert_ranks_agree(self, steps):
        for strategy in ("ddp", "zero1", "fsdp"):
            with self.subTest(strategy=strategy):
                axes = "replicate = 2" if strategy == "ddp" else "shard = 2"
                job = self.job(strategy, "--set", f"mesh.axes={{ {axes} }}", "--set", f"mesh.strategy={strategy}", "--set",
                               "batch.micro=4")
                run = self.run_of(job, f"{strategy}.run", steps, *self.EVERY, ranks=2)
                self.assert_averages(run, steps)


class Averages(AveragesTest):
    profiles = {"slow": Profile(0.9), "fast": Profile(0.5, warmup=True)}

    def test_averages_are_those_of_numpy(self):
        for recipe in ("cosine-clip", "sgd"):
            with self.subTest(recipe=recipe):
                run = self.run_of(self.job(recipe, recipe=recipe), f"{recipe}.run", 12, *self.EVERY)
                self.assert_averages(run, 12)
                titan_job.run([self.tools / "titan-ckpt", "verify", run])

    def test_averages_change_nothing_else(self):
        self.assert_nothing_else_changes()

    def test_a_resume_is_exact(self):
        job = self.job("job")
        whole = self.run_of(job, "whole", 20)
        for steps in (7, 20):
            parts = self.run_of(job, "parts", steps)
        self.assert_same_state(parts, whole, 20)

    def test_the_folder_of_a_profile_is_a_whole_model(self):
        """Frozen parameters have no average and are copied: for other programs, for `--init`, for an export; no load reads them."""
        job = self.job("job", "--set", "model.frozen=['*.bias']")
        run = self.run_of(job, "run", 5, *self.EVERY)
        self.assert_same_state(self.run_of(job, "at-once", 5, "--set", "checkpoint.async=false"), run, 5)
        model = self.folder(run, 5, "model")
        trained = [name for name in model if not name.endswith(".bias")]
        self.assertLess(len(trained), len(model))
        self.assert_averages(run, 5, trained)
        path = self.scratch / "slow" / "w.safetensors"
        path.parent.mkdir()
        titan_job.run([self.tools / "titan-ckpt", "export", run / "checkpoints/step-00000005", "--ema", "slow", "-o", path])
        whole = run / "checkpoints/step-00000005/ema-slow"
        expected, found = titan_job.read_safetensors(whole), titan_job.read_safetensors(path.parent)
        self.assert_same_tensors(found, expected)
        index = json.loads((whole / "model.safetensors.index.json").read_text())
        self.assertEqual(index["weight_map"].keys(), model.keys())
        started = self.scratch / "started"
        titan_job.run([self.tools / "titan-ckpt", "import", whole, "-o", started, "--job", job])
        titan_job.run([self.tools / "titan-ckpt", "verify", started])
        self.assertEqual(self.evaluation(job, started), self.evaluation(job, run, "--ema", "slow"))
        imported = titan_job.read_safetensors(started / "checkpoints/step-00000000/ema-slow")
        for name in model:
            self.assertEqual(imported[name].tobytes(), (expected[name] if name.endswith(".bias") else np.zeros_like(expected[name])).tobytes())
        self.assert_same_state(self.run_of(job, "run", 9, *self.EVERY), self.run_of(job, "whole", 9), 9)
        titan_job.run([self.tools / "titan-ckpt", "verify", run])
        table = json.loads((run / "checkpoints/step-00000009/manifest.json").read_text())["program"]["table"]
        self.assertEqual({(row["profile"], row["name"]) for row in table if row.get("copy")},
                         {(profile, name) for profile in self.profiles for name in model if name.endswith(".bias")})

    def test_evaluation_reads_the_averages(self):
        """`eval --ema` is the evaluation of the exported averages; so are those between steps, which leave no trace."""
        options = ["--set", "train.eval_every=5", "--set", "train.eval_ema=['fast', 'slow']", "--set", f"data.eval='{DATA}'"]
        job = self.job("job")
        run, plain = self.run_of(job, "run", 15, *options, *self.EVERY), self.run_of(job, "plain", 15)
        self.assert_same_state(run, plain, 15)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for profile in self.profiles:
            during = {row["step"]: row[key] for row in rows if (key := f"eval_loss_ema_{profile}") in row}
            self.assertEqual(list(during), [5, 10, 15])
            for step, loss in during.items():
                path = self.scratch / f"{profile}-{step}.safetensors"
                checkpoint = run / "checkpoints" / f"step-{step:08d}"
                titan_job.run([self.tools / "titan-ckpt", "export", checkpoint, "--ema", profile, "-o", path])
                started = self.scratch / f"{profile}-{step}.run"
                titan_job.run([self.tools / "titan-ckpt", "import", path, "-o", started, "--job", job])
                self.assertEqual(self.evaluation(job, started), loss)
                self.assertEqual(self.evaluation(job, run, "--ema", profile, "--ckpt", checkpoint), loss)
                self.assertNotEqual(self.evaluation(job, run, "--ckpt", checkpoint), loss)

    def test_averages_of_pytorch_are_imported(self):
        """The state dict of torch.optim.swa_utils.AveragedModel: `module.` in front of each name, and a count."""
        job = self.job("job")
        run = self.run_of(job, "run", 5)
        averages = {f"module.{name}": tensor for name, tensor in self.folder(run, 5, "ema-slow").items()}
        path, out = self.scratch / "averaged.safetensors", self.scratch / "imported"
        titan_job.write_safetensors(path, averages | {"n_averaged": np.array(5, np.int64)})
        titan_job.run([self.tools / "titan-ckpt", "import", path, "-o", out, "--job", job, "--ignore", "n_averaged"])
        self.assertEqual(self.evaluation(job, out), self.evaluation(job, run, "--ema", "slow"))

    def test_predict_reads_the_averages(self):
        job = self.job("job")
        run = self.run_of(job, "run", 10)
        outputs = []
        for name, options in (("model", []), ("slow", ["--ema", "slow"])):
            titan_job.run([job, "predict", "--out", run, "--data", DATA, "-o", self.scratch / f"{name}.npz", *options])
            outputs.append(np.load(self.scratch / f"{name}.npz"))
        for name in outputs[0]:
            self.assertFalse(np.array_equal(outputs[0][name], outputs[1][name]))

    def test_ranks_keep_the_same_averages(self):
        self.assert_ranks_agree(6)

    def test_ranks_share_the_copies(self):
        """Of a frozen parameter that is cut each rank copies its part; the run goes on, and on one rank as well."""
        options = ["--set", "model.frozen=['0.*', '*.bias']"]
        job = self.job("fsdp", *options, "--set", "mesh.axes={ shard = 2 }", "--set", "mesh.strategy=fsdp", "--set", "batch.micro=4")
        run = self.run_of(job, "run", 4, *self.EVERY, ranks=2)
        trained = [name for name in self.folder(run, 4, "model") if not name.startswith("0.") and not name.endswith(".bias")]
        self.run_of(job, "run", 6, *self.EVERY, ranks=2)
        self.assert_averages(run, 6, trained)
        self.run_of(self.job("alone", *options, "--set", "batch.micro=4"), "run", 8, *self.EVERY)
        self.assert_averages(run, 8, trained)
        # What `plan` says of a save, of two ranks and with copies.
        saved = [path for path in (run / "checkpoints/step-00000006").rglob("*") if path.is_file() and path.name != "manifest.json"]
        plan = json.loads(titan_job.run([job, "plan", "--json"]))["save"]
        self.assertEqual(plan, {"bytes": sum(path.stat().st_size for path in saved), "files": len(saved)})

    def test_the_reference_engine_keeps_them(self):
        self.assert_the_reference_engine_agrees(8)

    def test_a_run_goes_on_with_other_profiles(self):
        """--ema-start begins averages as the parameters of the checkpoint, --ema-drop leaves some out; both stay in the manifest."""
        both = self.job("both")
        slow = self.compile("slow", "relu", "cosine-clip", "--set", "ema.profiles={ slow = 0.9 }")
        run = self.run_of(slow, "run", 4, *self.EVERY)
        self.run_of(both, "run", 8, *self.EVERY, "--ema-start", "fast")
        weights = [self.folder(run, step, "model") for step in range(4, 9)]
        expected = {name: tensor.astype(np.float64) for name, tensor in weights[0].items()}
        for n, new in enumerate(weights[1:], start=4):
            decay = min(0.5, (1 + n) / (10 + n))
            expected = {name: e + (1 - decay) * (new[name] - e) for name, e in expected.items()}
        for name, tensor in self.folder(run, 8, "ema-fast").items():
            self.assertLessEqual(np.abs(tensor - expected[name]).max() / np.abs(tensor).max(), BOUND, name)
        self.run_of(both, "run", 9, *self.EVERY, "--ema-start", "fast")  # the same command line again
        self.assertEqual(self.init_of(run, 9)["ema_start"], ["fast"])
        self.run_of(slow, "run", 12, *self.EVERY, "--ema-drop", "fast")
        self.assertEqual(self.init_of(run, 12)["ema_drop"], ["fast"])
        self.assertFalse((run / "checkpoints/step-00000012/ema-fast").exists())
        whole = self.run_of(slow, "whole", 12)
        for folder in ("model", "optimizer", "ema-slow"):
            self.assert_same_tensors(self.folder(run, 12, folder), self.folder(whole, 12, folder))

    def init_of(self, run, step):
        return json.loads((run / "checkpoints" / f"step-{step:08d}" / "manifest.json").read_text())["init"]

    def test_reading_ignores_profiles_of_one_side(self):
        job, plain = self.job("job"), self.compile("plain", "relu", "cosine-clip")
        run, without = self.run_of(job, "run", 3), self.run_of(plain, "without", 3)
        self.assertEqual(self.evaluation(plain, run), self.evaluation(job, run))
        self.assertEqual(self.evaluation(job, without), self.evaluation(plain, without))

    def test_what_is_not_there_is_refused_by_name(self):
        job, plain = self.job("job"), self.compile("plain", "relu", "cosine-clip")
        run = self.run_of(job, "run", 3)
        fresh = self.scratch / "fresh"
        titan_job.run([self.tools / "titan-ckpt", "import", run / "checkpoints/step-00000003", "-o", fresh, "--job", job])
        without = self.run_of(plain, "without", 3)
        for command, says in (
                ([job, "eval", "--out", run, "--data", DATA, "--ema", "slwo"], "the job keeps no averages 'slwo': it keeps 'fast', 'slow'"),
                ([plain, "eval", "--out", without, "--data", DATA, "--ema", "slow"], "the job keeps no averages 'slow': it keeps none"),
                ([job, "eval", "--out", fresh, "--data", DATA, "--ema", "slow"], "there are no averages 'slow' yet: no update was made"),
                ([job, "eval", "--out", without, "--data", DATA, "--ema", "slow"], "the checkpoint has no averages 'slow': it has none"),
                ([plain, "train", "--out", run, "--data", DATA, "--steps", 5], "ema-slow/(.|\n)*--ema-drop fast(.|\n)*--ema-drop slow"),
                ([job, "train", "--out", without, "--data", DATA, "--steps", 5], "ema-fast/(.|\n)*--ema-start fast(.|\n)*--ema-start slow"),
                ([job, "train", "--out", run, "--data", DATA, "--ema-start", "slwo"],
                 "--ema-start slwo: the job keeps no such averages; it keeps 'fast', 'slow'"),
                ([job, "train", "--out", run, "--data", DATA, "--ema-drop", "slow"], "--ema-drop slow: the job keeps these averages")):
            with self.subTest(says=says), self.assertRaisesRegex(titan_job.Failure, f"exit 1 (.|\n)*{says}"):
                titan_job.run(command)


class AveragesOfIntervals(AveragesTest):
    profiles = {"third": Profile(0.8, every=3), "warm": Profile(0.6, warmup=True, every=3), "fourth": Profile(0.7, every=4), "slow": Profile(0.9)}

    def test_averages_are_those_of_numpy(self):
        run = self.run_of(self.job("job"), "run", 14, *self.EVERY)
        for steps in (8, 12, 13, 14):
            self.assert_averages(run, steps)
        for folder in ("ema-third", "ema-warm", "ema-fourth"):  # nothing moves in between
            self.assert_same_tensors(self.folder(run, 13, folder), self.folder(run, 14, folder))

    def test_they_change_nothing_else(self):
        self.assert_nothing_else_changes()

    def test_skipped_steps_do_not_count(self):
        """Two of five batches have no target: the third update is that of step 5."""
        arrays = dict(np.load(DATA))
        arrays["targets"][8:16] = arrays["targets"][24:32] = -100
        data = self.scratch / "gaps.npz"
        np.savez(data, **arrays)
        run = self.run_of(self.job("job"), "run", 20, *self.EVERY, data=data)
        self.assert_averages(run, 20, applied=[step for step in range(1, 21) if step % 5 not in (2, 4)])

    def test_a_resume_is_exact(self):
        """Also between two moves of an average, and behind one."""
        job = self.job("job")
        whole = self.run_of(job, "whole", 20, *self.EVERY)
        for steps in (2, 7, 12, 13, 20):
            parts = self.run_of(job, "parts", steps)
        self.assert_same_state(parts, whole, 20)
        self.assert_same_state(self.run_of(job, "at-once", 20, *self.EVERY, "--set", "checkpoint.async=false"), whole, 20)

    def test_ranks_keep_the_same_averages(self):
        self.assert_ranks_agree(7)

    def test_the_reference_engine_keeps_them(self):
        self.assert_the_reference_engine_agrees(9)

    def test_there_is_none_before_the_first_move(self):
        evaluates = ["--set", "train.eval_every=1", "--set", "train.eval_ema=['third']", "--set", f"data.eval='{DATA}'"]
        job = self.job("job")
        run = self.run_of(job, "run", 4, *evaluates, *self.EVERY)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows if "eval_loss_ema_third" in row], [3, 4])
        second = run / "checkpoints/step-00000002"
        export = [self.tools / "titan-ckpt", "export", second, "-o", self.scratch / "w.safetensors", "--ema"]
        says = "no averages 'third' yet: 2 updates were made, and the first average is that after 3"
        for command in ([job, "eval", "--out", run, "--data", DATA, "--ckpt", second, "--ema", "third"], [*export, "third"]):
            with self.assertRaisesRegex(titan_job.Failure, f"exit 1 (.|\n)*{says}"):
                titan_job.run(command)
        titan_job.run([*export, "slow"])


class Cost(training_test.TrainingTest):
    """What `plan` says that averages cost, of a model whose gradient norm, averages and updates could meet in one kernel."""
    MODEL = "nn:gpt?layers=2,width=64,heads=2,vocab=256,length=32"
    RECIPE = "[data]\ntrain = 'tokens.bin'\n[batch]\nmicro = 8\nglobal = 16\n[optimizer]\nclip_norm = 1.0\n"

    def functions(self, profiles):
        """{function: its row in `plan --json`}, and the elements of all parameters."""
        (self.scratch / "train.toml").write_text(self.RECIPE)
        titan_job.compile_job(self.tools, self.MODEL, self.scratch / "train.toml", self.scratch / "job", "--set", f"ema.profiles={{ {profiles} }}")
        plan = json.loads(titan_job.run([self.scratch / "job", "plan", "--json"]))
        return plan["functions"], plan["memory"]["state"]["param"] // 4

    def test_a_profile_is_read_and_written(self):
        without, elements = self.functions("")
        for count in (1, 2, 3):
            step = self.functions(", ".join(f"p{i} = 0.9" for i in range(count)))[0]["step"]
            extra = step["bytes"] - without["step"]["bytes"] - 8 * count * elements
            self.assertLessEqual(extra, 64 * step["kernels"])  # scalars
            self.assertLessEqual(step["kernels"], without["step"]["kernels"] + 1)

    def test_an_interval_has_a_function_of_its_own(self):
        without, elements = self.functions("")
        functions = self.functions("third = { decay = 0.9, every = 3 }")[0]
        self.assertEqual(functions["step"], without["step"])
        self.assertLessEqual(functions["ema.3"]["bytes"] - 12 * elements, 64 * functions["ema.3"]["kernels"])


if __name__ == "__main__":
    training_test.main(__doc__)
