"""Writes conformance cases that go wrong, each in its own way, and one that is right: conformance-cases.py OUTPUT"""
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "errors"))
from onnx_bytes import graph, model, node, tensor, value  # noqa: E402

NEGATED = model(graph([node("Neg", ["x"], ["y"])], [value("x", [3])], [value("y", [3])]))
X = np.array([0, -1, 2], np.float32)


def write(folder, x, y, written=NEGATED):
    recording = folder / "test_data_set_0"
    recording.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(written)
    (recording / "input_0.pb").write_bytes(x)
    (recording / "output_0.pb").write_bytes(y)


output = Path(sys.argv[1])
write(output / "right", tensor("x", X), tensor("y", -X))
write(output / "wrong", tensor("x", X), tensor("y", np.array([0, 2, -2], np.float32)))
write(output / "unreadable", b"\xff", tensor("y", -X))
# A weight, which files of that time list among the inputs, too; a slope for each channel has one dimension.
SLOPES = graph([node("PRelu", ["x", "w"], ["y"])], [value("x", [1, 2, 3]), value("w", [2])], [value("y", [1, 2, 3])],
               [tensor("w", np.array([2, 3], np.float32))])
write(output / "old", tensor("x", np.array([[[1, -1, 2], [-1, -2, 3]]], np.float32)),
      tensor("y", np.array([[[1, -2, 2], [-3, -6, 3]]], np.float32)), model(SLOPES, opset=6))
write(output / "older", tensor("x", X), tensor("y", -X), model(graph([node("PRelu", ["x", "x"], ["y"])], [value("x", [3])],
                                                                     [value("y", [3])]), opset=5))
