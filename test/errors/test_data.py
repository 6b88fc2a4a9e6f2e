"""Data that a job cannot read, or cannot train on."""
import json
import os
import subprocess
import time
import unittest
import zipfile

import numpy as np

import onnx_bytes as onnx
from support import BAD_INPUT, CLASSES, INPUTS, RECIPE, RUN_FAILED, USAGE, COMPILE, ErrorTest, compiled_job, write_data


class Data(ErrorTest):
    def bad(self, says, data="data.npz", **options):
        """The same words from every command, and train does not even make the run's folder."""
        message = self.train_refused("--data", data, says=says, **options)
        self.refused(BAD_INPUT, self.job, "eval", "--out", "run", "--data", data, says=says)
        return message

    def arrays(self, says, **changes):
        write_data(self.folder / "data.npz", **changes)
        return self.bad(says)

    # The file

    def test_missing(self):
        self.bad(["none.npz", "No such file"], data="none.npz")

    def test_not_given(self):
        job = compiled_job("--set", "data.train=[]")
        self.refused(BAD_INPUT, job, "train", "--out", "run", says=["data.train", "--data"])

    def test_no_evaluation_data(self):
        self.refused(BAD_INPUT, self.job, "eval", "--out", "run", says=["data.eval", "--data"])

    def test_no_prediction_data(self):
        self.refused(BAD_INPUT, self.job, "predict", "--out", "run", "-o", "out.npz", says="--data")

    def test_folder(self):
        (self.folder / "folder.npz").mkdir()
        self.bad("folder.npz", data="folder.npz")

    def test_pipe(self):
        os.mkfifo(self.folder / "pipe.npz")
        self.bad("pipe.npz", data="pipe.npz")

    def test_empty(self):
        (self.folder / "data.npz").write_bytes(b"")
        self.bad("data.npz")

    def test_text(self):
        (self.folder / "data.npz").write_bytes(b"x,targets\n" * 1000)
        self.bad("data.npz")

    def test_unknown_kind(self):
        (self.folder / "data.csv").write_text("1,2\n")
        self.bad(["data.csv", ".npz"], data="data.csv")

    def test_truncated(self):
        whole = (self.folder / "data.npz").read_bytes()
        for size in (1, 30, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1):
            with self.subTest(size=size):
                (self.folder / "data.npz").write_bytes(whole[:size])
                self.bad("data.npz")

    def test_cut_during_a_run(self):
        write_data(self.folder / "data.npz", samples=4096)
        metrics = self.folder / "run" / "metrics.jsonl"
        with subprocess.Popen([self.job, "train", "--out", "run", "--threads", "1", "--steps", "100000000"],
                              cwd=self.folder, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as run:
            self.addCleanup(run.kill)
            deadline = time.monotonic() + 30
            while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.01)
            os.truncate(self.folder / "data.npz", 8192)
            _, said = run.communicate(timeout=30)
        self.assertEqual(run.returncode, BAD_INPUT, said)
        self.assertRegex(said.splitlines()[-1], "^error: .*'data.npz'")

    def test_flipped_bytes(self):
        """Any damage of the archive's own tables is refused; a changed value of an array may pass."""
        whole = (self.folder / "data.npz").read_bytes()
        for position in range(0, len(whole), len(whole) // 40):
            changed = bytearray(whole)
            changed[position] ^= 0x5A
            (self.folder / "data.npz").write_bytes(changed)
            done = self.run_tool(self.job, "train", "--out", f"run{position}", "--steps", 1, "--threads", 1)
            self.assertIn(done.returncode, (0, BAD_INPUT), f"byte {position}: {done.stderr}")

    def test_pickled_objects(self):
        np.savez(self.folder / "data.npz", x=np.array([{}, {}], dtype=object), targets=np.zeros(2, np.int64))
        self.bad("data.npz")

    def test_compressed_bomb(self):
        with zipfile.ZipFile(self.folder / "data.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", bytes(1 << 26))
        self.bad("data.npz")

    # The arrays

    def test_no_samples(self):
        self.arrays(says="0 samples", samples=0)

    def test_fewer_samples_than_a_batch(self):
        write_data(self.folder / "data.npz", samples=5)
        self.train_refused(says=["data.npz", "5 samples", "batch.global = 8"])

    def test_field_missing(self):
        self.arrays(says=["targets", "data.npz"], targets=None)

    def test_input_missing(self):
        self.arrays(says=["'x'", "data.npz"], x=None)

    def test_field_of_a_recipe_that_is_not_there(self):
        self.train_refused("--set", "data.fields={ x = 'images' }", says=["images", "data.npz"])

    def test_field_for_an_input_that_is_not_there(self):
        self.train_refused("--set", "data.fields={ images = 'x' }", says="images")

    def test_wrong_dtype(self):
        self.arrays(says=["x.npy", "<c8"], x=np.zeros((64, INPUTS), np.complex64))

    def test_float_labels(self):
        self.arrays(says="targets", targets=np.full(64, 0.5, np.float32))

    def test_wrong_shape(self):
        self.arrays(says=["'x'", "11", "12"], x=np.zeros((64, 11), np.float32))

    def test_wrong_rank(self):
        self.arrays(says="'x'", x=np.zeros((64, 3, 4, 2), np.float32))

    def test_a_number_for_an_array(self):
        self.arrays(says="'x'", x=np.float32(3))

    def test_lengths_differ(self):
        self.arrays(says=["63", "64"], targets=np.zeros(63, np.int64))

    def test_labels_out_of_range(self):
        for label in (CLASSES, -1, 1 << 40):
            with self.subTest(label=label):
                targets = np.zeros(64, np.int64)
                targets[17] = label
                self.arrays(says=["targets", str(label), "17", str(CLASSES)], targets=targets)

    def test_tuples_out_of_range(self):
        """Each of a tuple's numbers has its own extent of the table, and the place may be within it."""
        lookup = onnx.graph([onnx.node("GatherND", ["table", "pairs"], ["rows"])], [onnx.value("pairs", ["batch", 2], onnx.INT64)],
                            [onnx.value("rows", ["batch", CLASSES])], [onnx.tensor("table", np.ones((6, 4, CLASSES), np.float32))])
        model = self.folder / "pairs.onnx"
        model.write_bytes(onnx.model(lookup, producer="pytorch"))
        self.succeeds(COMPILE, model, "--recipe", "recipe.toml", "-o", "pairs")
        for pair, element, extent in (((0, 6), 1, 4), ((0, 4), 1, 4), ((1, -1), 1, 4), ((-1, 3), 0, 6), ((6, 0), 0, 6)):
            with self.subTest(pair=pair):
                pairs = np.zeros((64, 2), np.int64)
                pairs[17] = pair
                write_data(self.folder / "data.npz", x=None, pairs=pairs)
                self.refused(BAD_INPUT, self.folder / "pairs", "train", "--out", "run", says=[f"array 'pairs', sample 17: value {pair[element]}, element {element}, is not in [0, {extent})"])

    def test_ignored_labels_are_no_mistake(self):
        targets = np.zeros(64, np.int64)
        targets[::2] = -100
        write_data(self.folder / "data.npz", targets=targets)
        self.train()

    def test_ignored_labels_of_a_loss_in_the_model(self):
        loss = onnx.node("SoftmaxCrossEntropyLoss", ["scores", "y"], ["loss"], ignore_index=255)
        scores = onnx.node("MatMul", ["x", "w"], ["scores"])
        graph = onnx.graph([scores, loss], [onnx.value("x", ["batch", INPUTS]), onnx.value("y", ["batch"], onnx.INT64)],
                           [onnx.value("loss", [])], [onnx.tensor("w", np.ones((INPUTS, CLASSES), np.float32))])
        (self.folder / "loss.onnx").write_bytes(onnx.model(graph))
        labels = np.zeros(64, np.int64)
        labels[::2] = 255
        write_data(self.folder / "data.npz", targets=None, y=labels)
        command = [COMPILE, "loss.onnx", "--recipe", "recipe.toml", "--set", "loss.kind=output", "-o", "loss"]
        self.succeeds(*command)
        self.refused(BAD_INPUT, self.folder / "loss", "train", "--out", "run", says=["array 'y', sample 0: value 255"])
        self.succeeds(*command, "--set", "loss.target=y", "--set", "loss.ignore_index=255")
        self.succeeds(self.folder / "loss", "train", "--out", "run")

    def test_scaling_that_no_array_has(self):
        """A recipe for images of bytes, or a list for channels, that has no effect on floats."""
        for assignment, key in {"data.mean=[1, 2]": "data.mean", "data.std=[2]": "data.std", "data.scale=0.5": "data.scale"}.items():
            with self.subTest(assignment=assignment):
                self.train_refused("--set", assignment,
                                   says=["data.npz", f"no array is scaled by {key}, which is for inputs in U8", "x F32"])

    def test_second_file_of_another_shape(self):
        write_data(self.folder / "more.npz", x=np.zeros((64, 7), np.float32))
        self.train_refused("--data", "data.npz", "--data", "more.npz", says=["more.npz", "7", "12"])

    # Values

    def test_non_finite_steps_are_skipped_and_counted(self):
        x = np.ones((64, INPUTS), np.float32)
        x[3] = np.nan
        write_data(self.folder / "data.npz", x=x)
        done = self.train("--steps", 8, "--set", "data.shuffle=false")
        self.assertRegex(done.stdout, r"step 8  loss [0-9.]+  skipped 1 of 8 steps \(non-finite gradients\)  checkpoint run/")
        rows = [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows if row.get("skipped")], [1])
        counters = json.loads((self.checkpoint / "manifest.json").read_text())["counters"]
        self.assertEqual((counters["step"], counters["skipped"], counters["optimizer.t"]), (8, 1, 7))

    def test_steps_without_targets_are_skipped_and_counted(self):
        x, targets = np.ones((64, INPUTS), np.float32), np.full(64, -100)
        x[9], targets[8:] = np.nan, 1
        write_data(self.folder / "data.npz", x=x, targets=targets)
        done = self.train("--steps", 8, "--set", "data.shuffle=false")
        self.assertIn("  skipped 2 of 8 steps (1 non-finite gradients, 1 no valid targets)  ", done.stdout)
        self.assertIn("skipped 1: no valid targets", done.stderr)
        write_data(self.folder / "data.npz", targets=np.full(64, -100))
        self.refused(RUN_FAILED, self.job, "train", "--out", "other", "--set", "train.non_finite_limit=3",
                     says="the updates of steps 1 to 3 were skipped, train.non_finite_limit = 3: the last batch has no valid target, "
                          "every one is loss.ignore_index: check the targets and loss.ignore_index", may_change=["other"])

    def test_non_finite_limit_ends_the_run_and_keeps_its_state(self):
        self.train("--steps", 4)
        write_data(self.folder / "data.npz", x=np.full((64, INPUTS), np.inf, np.float32))
        self.train_refused("--steps", 50, "--set", "train.non_finite_limit=3", code=RUN_FAILED,
                           says=["steps 5 to 7", "non_finite_limit = 3", "input 'x'"],
                           may_change=["run/metrics.jsonl", "run/events", "run/.lock"])
        self.assertEqual(self.checkpoint.name, "step-00000004")
        write_data(self.folder / "data.npz")
        self.train("--steps", 6)
        self.assertEqual(self.checkpoint.name, "step-00000006")


class Tokens(ErrorTest):
    """Token files need a model of tokens: here only that a model of features refuses them."""

    def test_token_files_for_a_model_of_features(self):
        (self.folder / "tokens.bin").write_bytes(bytes(4096))
        self.train_refused("--data", "tokens.bin", says="tokens.bin")

    def test_odd_token_file(self):
        (self.folder / "tokens.bin").write_bytes(bytes(4097))
        self.train_refused("--data", "tokens.bin", says="tokens.bin")


class Overrides(ErrorTest):
    """What may be said when a job runs, and what was settled when it was compiled."""

    def test_compile_time_keys(self):
        for assignment, key in {"batch.micro=2": "batch.micro", "loss.kind=mse": "loss.kind",
                                "optimizer.kind=sgd": "optimizer.kind", "optimizer.betas=[0.8, 0.9]": "optimizer.betas",
                                "model.init=fresh": "model.init"}.items():
            with self.subTest(assignment=assignment):
                self.train_refused("--set", assignment, code=USAGE, says=[key, "compile"])

    def test_unknown_key(self):
        self.train_refused("--set", "train.stepss=3", says=["train.stepss", "train.steps"])

    def test_no_value(self):
        for assignment in ("train.steps", "=3", "train=3"):
            with self.subTest(assignment=assignment):
                done = self.run_tool(self.job, "train", "--out", "run", "--set", assignment)
                self.assertIn(done.returncode, (BAD_INPUT, USAGE), done.stderr)

    def test_values_out_of_range(self):
        for assignment in ("optimizer.lr=-1", "optimizer.lr=nan", "optimizer.weight_decay=-0.1", "train.seed=-1",
                           "train.log_every=0", "checkpoint.keep=-1", "train.steps=abc"):
            with self.subTest(assignment=assignment):
                self.train_refused("--set", assignment, says=assignment.split("=")[0])

    def test_changed_keys_are_named_on_resume(self):
        self.train("--steps", 2)
        done = self.train("--steps", 4, "--set", "optimizer.lr=0.5")
        self.assertIn("optimizer.lr", done.stderr)
        self.assertIn("0.5", done.stderr)

    def test_changed_batch_is_named_on_resume(self):
        self.train("--steps", 2)
        done = self.succeeds(compiled_job("--set", "batch.global=16"), "train", "--out", "run", "--steps", 4)
        self.assertIn("batch.global", done.stderr)

    def test_changed_data_is_named_on_resume(self):
        self.train("--steps", 2)
        write_data(self.folder / "data.npz", samples=32)
        self.assertIn("32 samples", self.train("--steps", 4).stderr)

    def test_seed_of_a_started_run(self):
        self.train("--steps", 2)
        self.train_refused("--steps", 4, "--set", "train.seed=7", code=USAGE, says=["train.seed = 7", "0"],
                           may_change=["run/.lock"])

    def test_data_of_the_recipe_that_moved(self):
        (self.folder / "data.npz").unlink()
        self.train_refused(says=["data.npz", "No such file"])
        self.assertIn("data.npz", RECIPE)


if __name__ == "__main__":
    unittest.main()
