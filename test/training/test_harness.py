#!/usr/bin/env python3
"""The comparison itself is tested: it accepts the recorded run, and sees each thing that it is there to see."""
import json
import struct
import tempfile
import unittest
from pathlib import Path

import numpy as np

import check_losses
import titan_job
from compare import compare_losses, compare_state, values_of

REFERENCE = {"state": {"a.weight": [2, 3], "a.bias": [2], "b.weight": [2, 3]}, "buffers": [],
             "aliases": [["a.weight", "b.weight"]]}


def state():
    return {"a.weight": np.ones((2, 3), np.float32), "a.bias": np.zeros(2, np.float32)}


TRAINED = values_of(state() | {"b.weight": state()["a.weight"]})


class Losses(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(compare_losses([{"loss": 1.0}, {"loss": 2.0}], [1.00005, 2.0]), [])

    def test_other_value(self):
        self.assertIn("step 2", compare_losses([{"loss": 1.0}, {"loss": 2.001}], [1.0, 2.0])[0])

    def test_not_a_number(self):
        self.assertIn("step 1", compare_losses([{"loss": float("nan")}], [1.0])[0])

    def test_missing_step(self):
        self.assertIn("1 steps", compare_losses([{"loss": 1.0}], [1.0, 1.0])[0])


class State(unittest.TestCase):
    def test_either_name_of_a_tied_set(self):
        self.assertEqual(compare_state(state(), REFERENCE, TRAINED), [])
        other = state()
        other["b.weight"] = other.pop("a.weight")
        self.assertEqual(compare_state(other, REFERENCE, TRAINED), [])

    def test_tied_stored_twice(self):
        self.assertIn("2 times", compare_state(state() | {"b.weight": np.ones((2, 3))}, REFERENCE, TRAINED)[0])

    def test_missing(self):
        self.assertIn("a.bias", compare_state({"a.weight": state()["a.weight"]}, REFERENCE, TRAINED)[0])

    def test_extra(self):
        self.assertIn("val_7", compare_state(state() | {"val_7": np.ones(1)}, REFERENCE, TRAINED)[0])

    def test_folded_by_the_exporter(self):
        left = {"a.weight": state()["a.weight"], "add_0.weight": np.zeros((1, 2))}
        self.assertEqual(compare_state(left, REFERENCE, TRAINED, ["a.bias"]), [])
        self.assertEqual(len(compare_state(left, REFERENCE, TRAINED)), 2)
        self.assertIn("norm", compare_state(left | {"add_0.weight": np.ones(2)}, REFERENCE, TRAINED, ["a.bias"])[0])

    def test_transposed(self):
        self.assertIn("shape [3, 2]", compare_state(state() | {"a.weight": np.ones((3, 2))}, REFERENCE, TRAINED)[0])

    def test_a_square_weight_transposed(self):
        square = np.arange(9, dtype=np.float32).reshape(3, 3)
        reference, trained = {"state": {"w": [3, 3]}, "buffers": [], "aliases": []}, values_of({"w": square})
        self.assertEqual(compare_state({"w": square}, reference, trained), [])
        self.assertEqual(compare_state({"w": square * (1 + 1e-4)}, reference, trained), [])
        self.assertIn("other places", compare_state({"w": square.T}, reference, trained)[0])

    def test_rows_of_a_weight_exchanged(self):
        rows = np.arange(6, dtype=np.float32).reshape(2, 3)
        reference = {"state": {"w": [2, 3]}, "buffers": [], "aliases": []}
        self.assertIn("other places", compare_state({"w": rows[::-1]}, reference, values_of({"w": rows}))[0])

    def test_another_update_of_the_same_norm(self):
        updates = TRAINED | {"updates": {"a.weight": 1e-2}}
        self.assertEqual(compare_state(state(), REFERENCE, updates), [])
        other = state()
        other["a.weight"][0, 1:] += np.float32([1e-3, -1e-3])
        self.assertEqual(compare_state(other, REFERENCE, TRAINED), [])
        self.assertIn("update", compare_state(other, REFERENCE, updates)[0])

    def test_what_an_export_has_instead(self):
        left = {"matmul_0.weight": state()["a.weight"].T, "a.bias": np.zeros(1, np.float32)}
        instead = {name: {"name": "matmul_0.weight", "transposed": True} for name in ("a.weight", "b.weight")}
        tensors = {**state(), "b.weight": state()["a.weight"], "a.bias[:1]": np.zeros(1, np.float32)}
        trained = values_of(tensors)
        self.assertEqual(compare_state(left, REFERENCE, trained, instead=instead | {"a.bias": {"rows": 1}}), [])
        self.assertIn("a.bias", compare_state(left, REFERENCE, trained, instead=instead)[0])
        self.assertIn("missing", compare_state(state(), REFERENCE, trained, instead=instead)[0])

    def test_untrained(self):
        self.assertIn("norm", compare_state(state() | {"a.bias": np.ones(2)}, REFERENCE, TRAINED)[0])


class Safetensors(unittest.TestCase):
    def test_pieces_of_a_tensor(self):
        whole = np.arange(12, dtype=np.float32).reshape(4, 3)
        with tempfile.TemporaryDirectory() as folder:
            for index, first in enumerate((0, 2)):
                info = json.dumps({"w": {"saved_offsets": [first, 0]}})
                header = json.dumps({"__metadata__": {"DCP_SHARDING_INFO": info},
                                     "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
                path = Path(folder) / f"shard-{index}.safetensors"
                path.write_bytes(struct.pack("<Q", len(header)) + header + whole[first:first + 2].tobytes())
            np.testing.assert_array_equal(titan_job.read_safetensors(folder)["w"], whole)


class References(unittest.TestCase):
    def test_every_file_is_there(self):
        folders = sorted(check_losses.REFERENCES.iterdir())
        self.assertGreaterEqual(len(folders), 13)
        for folder in folders:
            reference = json.loads((folder / "reference.json").read_text())
            for export, recipe in check_losses.pairs(reference):
                self.assertTrue((folder / f"{export}.onnx").is_file(), f"{folder.name}: {export}")
                self.assertTrue((folder / f"{recipe}.toml").is_file(), f"{folder.name}: {recipe}")
                expected = reference["recipes"][recipe]
                self.assertEqual(len(expected["f32"]), 20)
                self.assertEqual(expected["projections"].keys(), expected["norms"].keys())

    def test_no_path_of_the_exporting_machine(self):
        for path in check_losses.REFERENCES.rglob("*.onnx"):
            content = path.read_bytes()
            for word in (b"/root/", b"/home/", b"site-packages", b"stack_trace"):
                self.assertNotIn(word, content, path)


if __name__ == "__main__":
    unittest.main()
