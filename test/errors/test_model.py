"""Model files that cannot be trained."""
import os
import unittest
from pathlib import Path

import numpy as np

import onnx_bytes as onnx
from support import BAD_INPUT, COMPILE, ENVIRONMENT, MODEL, USAGE, ErrorTest


class Model(ErrorTest):
    def bad(self, content, says, **options):
        """A model file with this content is refused, and so it is by --check and --write-recipe."""
        path = self.folder / "model.onnx"
        path.write_bytes(content)
        message = self.compile_refused(model="model.onnx", says=says, **options)
        for flag in ("--check", "--write-recipe"):
            done = self.run_tool(COMPILE, "model.onnx", flag)
            self.assertIn(done.returncode, (0, BAD_INPUT), f"{flag}: {done.stderr}")
        return message

    def test_the_encoder_makes_a_model_that_compiles(self):
        (self.folder / "model.onnx").write_bytes(onnx.linear())
        self.succeeds(COMPILE, "model.onnx", "--recipe", "recipe.toml", "-o", "job")
        self.succeeds("./job", "train", "--steps", 2)

    # The file

    def test_missing(self):
        self.compile_refused(model="none.onnx", says=["none.onnx", "No such file"])

    def test_folder(self):
        (self.folder / "folder.onnx").mkdir()
        self.compile_refused(model="folder.onnx", says=["folder.onnx", "not a regular file"])

    def test_pipe(self):
        os.mkfifo(self.folder / "pipe.onnx")
        self.compile_refused(model="pipe.onnx", says=["pipe.onnx", "not a regular file"])

    def test_empty(self):
        self.bad(b"", says=["model.onnx", "empty"])

    def test_text(self):
        self.bad(b"this is no model\n" * 100, says=["model.onnx", "not an ONNX model"])

    def test_random_bytes(self):
        for seed in range(3):
            self.bad(np.random.default_rng(seed).bytes(4096), says="model.onnx")

    def test_truncated_anywhere(self):
        whole = MODEL.read_bytes()
        for size in sorted({1, 2, 10, 100, 1000, len(whole) // 2, len(whole) - 1000, len(whole) - 1}):
            with self.subTest(size=size):
                self.bad(whole[:size], says="model.onnx")

    def test_oversized(self):
        with open(self.folder / "model.onnx", "wb") as file:
            file.truncate(3 << 30)
        self.compile_refused(model="model.onnx", says=["model.onnx", str(3 << 30), "external data"])
        (self.folder / "model.onnx").unlink()

    def test_a_length_beyond_the_file(self):
        self.bad(onnx.number(1, 8) + b"\x3a\xff\xff\xff\xff\x07", says="truncated")

    def test_other_extension(self):
        (self.folder / "model.pt").write_bytes(b"PK")
        self.compile_refused(model="model.pt", code=USAGE, says=["model.pt", ".onnx"])

    def test_a_model_that_titan_does_not_know(self):
        self.compile_refused(model="nn:mlpp?layers=2", code=USAGE, says=["nn:mlpp", "did you mean 'mlp'"])

    # Versions

    def test_opset_too_old(self):
        self.bad(onnx.linear(opset=6), says=["opset 6", "version_converter"])

    def test_opset_too_new(self):
        self.bad(onnx.linear(opset=99), says=["opset 99", "opset_version="])

    def test_opset_negative(self):
        self.bad(onnx.linear(opset=-1), says="opset -1")

    def test_no_opset(self):
        self.bad(onnx.number(1, 8) + onnx.block(7, onnx.graph([], [], [])), says="imports no opset")

    def test_no_graph(self):
        self.bad(onnx.number(1, 8) + onnx.block(8, onnx.number(2, 18)), says="no graph")

    def test_unknown_domain(self):
        nodes = [onnx.node("FancyGemm", ["x", "fc.weight"], ["y"], "/fc/FancyGemm", domain="com.example")]
        self.bad(onnx.linear(nodes=nodes), says=["/fc/FancyGemm", "com.example"], lines=3)

    # The graph

    def test_every_unsupported_node_is_listed_with_its_path(self):
        nodes = [onnx.node("Gemm", ["x", "fc.weight", "fc.bias"], ["h"], "/fc/Gemm", transB=1),
                 onnx.node("NonZero", ["h"], ["n"], "/blocks.0/find/NonZero"),
                 onnx.node("Unknown", ["n"], ["u"], "/blocks.1/mystery/Unknown"),
                 onnx.node("Det", ["u"], ["y"], "/head/Det")]
        self.bad(onnx.linear(nodes=nodes), lines=4, says=[
            "3 nodes", "/blocks.0/find/NonZero", "/blocks.1/mystery/Unknown", "/head/Det"])

    def test_cycle(self):
        nodes = [onnx.node("Add", ["x", "b"], ["a"], "first"), onnx.node("Relu", ["a"], ["b"], "second"),
                 onnx.node("Gemm", ["a", "fc.weight", "fc.bias"], ["y"], "third", transB=1)]
        self.bad(onnx.linear(nodes=nodes), says="cycle")

    def test_node_that_reads_itself(self):
        nodes = [onnx.node("Relu", ["a"], ["a"], "loop"), onnx.node("Add", ["x", "a"], ["y"], "add")]
        self.bad(onnx.linear(nodes=nodes), says="loop")

    def test_undefined_value(self):
        nodes = [onnx.node("Gemm", ["x", "nowhere", "fc.bias"], ["y"], "/fc/Gemm", transB=1)]
        self.bad(onnx.linear(nodes=nodes), says=["nowhere", "/fc/Gemm"])

    def test_value_defined_twice(self):
        gemm = onnx.node("Gemm", ["x", "fc.weight", "fc.bias"], ["y"], "/fc/Gemm", transB=1)
        self.bad(onnx.linear(nodes=[gemm, gemm]), says="'y'")

    def test_initializer_defined_twice(self):
        weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32))
        bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
        self.bad(onnx.linear(initializers=[weight, weight, bias]), says="fc.weight")

    def test_input_defined_twice(self):
        x = onnx.value("x", ["batch", 12])
        self.bad(onnx.linear(inputs=[x, x]), says="'x'")

    def test_output_that_nothing_makes(self):
        self.bad(onnx.linear(outputs=[onnx.value("z", ["batch", 5])]), says="'z'")

    def test_no_output(self):
        self.bad(onnx.model(onnx.graph([], [onnx.value("x", ["batch", 12])], [])), says="output")

    def test_shapes_that_do_not_fit(self):
        weight = onnx.tensor("fc.weight", np.ones((5, 11), np.float32))
        bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
        self.bad(onnx.linear(initializers=[weight, bias]), says=["/fc/Gemm", "11", "12"])

    def test_subgraphs_nested_too_deep(self):
        inner = onnx.graph([], [], [])
        for depth in range(200):
            inner = onnx.graph([onnx.node("If", ["c"], ["o"], f"if{depth}", then_branch=inner)], [], [])
        self.bad(onnx.model(inner), says="model.onnx")

    def test_functions_that_call_each_other(self):
        functions = [onnx.function("First", [onnx.node("Second", ["a"], ["b"], domain="local")]),
                     onnx.function("Second", [onnx.node("First", ["a"], ["b"], domain="local")])]
        nodes = [onnx.node("First", ["x"], ["y"], "call", domain="local")]
        self.bad(onnx.linear(nodes=nodes, functions=functions), says="local function 'First' calls itself")

    def test_functions_that_multiply(self):
        functions = [onnx.function("F0", [onnx.node("Relu", ["a"], ["b"])])]
        for i in range(1, 30):
            calls = [onnx.node(f"F{i - 1}", ["a"], ["t"], domain="local"),
                     onnx.node(f"F{i - 1}", ["t"], ["b"], domain="local")]
            functions.append(onnx.function(f"F{i}", calls))
        nodes = [onnx.node("F29", ["x"], ["y"], "call", domain="local")]
        self.bad(onnx.linear(nodes=nodes, functions=functions), says="model.onnx")

    # Tensors

    def test_data_shorter_than_the_shape(self):
        weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32), raw=bytes(100))
        bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
        self.bad(onnx.linear(initializers=[weight, bias]), says=["fc.weight", "100", "240"])

    def test_data_longer_than_the_shape(self):
        weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32), raw=bytes(244))
        bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
        self.bad(onnx.linear(initializers=[weight, bias]), says=["fc.weight", "244", "240"])

    def test_absurd_shapes(self):
        for dims in ([1 << 40, 1 << 40], [-5, 12], [1 << 62], [(1 << 63) - 1, 2]):
            with self.subTest(dims=dims):
                weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32), dims=dims)
                bias = onnx.tensor("fc.bias", np.zeros(5, np.float32))
                self.bad(onnx.linear(initializers=[weight, bias]), says="fc.weight")

    def test_absurd_input_dims(self):
        for dims in (["batch", 1 << 40], ["batch", -3], ["batch", 0], [0, 12], []):
            with self.subTest(dims=dims):
                self.bad(onnx.linear(inputs=[onnx.value("x", dims)]), says="model.onnx", lines=3)

    def test_unbound_symbolic_dim(self):
        weight = onnx.tensor("fc.weight", np.ones((5, 12), np.float32))
        model = onnx.linear(initializers=[weight], inputs=[onnx.value("x", ["batch", "length", 12])],
                            nodes=[onnx.node("Transpose", ["fc.weight"], ["t"], "/t"),
                                   onnx.node("MatMul", ["x", "t"], ["y"], "/m")],
                            outputs=[onnx.value("y", ["batch", "length", 5])])
        self.bad(model, says=["length", "model.dims"])

    def test_every_bit_flip_is_survived(self):
        """One byte changed, anywhere: refused with one line, or compiled (a weight has no wrong value)."""
        whole = MODEL.read_bytes()
        for position in range(0, len(whole), max(1, len(whole) // 30)):
            changed = bytearray(whole)
            changed[position] ^= 0xFF
            (self.folder / "model.onnx").write_bytes(changed)
            done = self.run_tool(COMPILE, "model.onnx", "--recipe", "recipe.toml", "--emit=import", "-o", "out")
            self.assertIn(done.returncode, (0, BAD_INPUT), f"byte {position}: {done.stderr}")


class ExternalData(ErrorTest):
    """Weights in another file: only a regular file below the model's folder is read."""

    def external(self, location, offset=None, length=240):
        return onnx.linear(initializers=[onnx.external_tensor("fc.weight", [5, 12], location, offset, length),
                                         onnx.tensor("fc.bias", np.zeros(5, np.float32))])

    def setUp(self):
        super().setUp()
        (self.folder / "model").mkdir()
        (self.folder / "outside.bin").write_bytes(bytes(240))

    def bad(self, content, says):
        (self.folder / "model" / "model.onnx").write_bytes(content)
        return self.compile_refused(model="model/model.onnx", says=says)

    def test_inside_is_read(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(240))
        (self.folder / "model" / "model.onnx").write_bytes(self.external("weights.bin"))
        self.succeeds(COMPILE, "model/model.onnx", "--recipe", "recipe.toml", "-o", "job")

    def test_missing(self):
        self.bad(self.external("weights.bin"), says="weights.bin")

    def test_truncated(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(100))
        self.bad(self.external("weights.bin"), says="100")

    def test_offset_beyond_the_file(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(240))
        self.bad(self.external("weights.bin", offset=4096), says="4096")

    def test_offset_that_overflows(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(240))
        self.bad(self.external("weights.bin", offset=(1 << 64) - 16), says="offset")

    def test_offset_that_is_no_number(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(240))
        for offset in ("abc", "-1", "1e3", ""):
            with self.subTest(offset=offset):
                self.bad(self.external("weights.bin", offset=offset), says="offset")

    def test_length_of_another_shape(self):
        (self.folder / "model" / "weights.bin").write_bytes(bytes(4096))
        self.bad(self.external("weights.bin", length=100), says="100")

    def test_absolute_path(self):
        self.bad(self.external(str(self.folder / "outside.bin")), says="outside.bin")

    def test_parent_folder(self):
        self.bad(self.external("../outside.bin"), says="..")

    def test_parent_folder_in_the_middle(self):
        (self.folder / "model" / "sub").mkdir()
        self.bad(self.external("sub/../../outside.bin"), says="..")

    def test_symbolic_link(self):
        (self.folder / "model" / "weights.bin").symlink_to(self.folder / "outside.bin")
        self.bad(self.external("weights.bin"), says="weights.bin")

    def test_symbolic_link_to_a_folder(self):
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "weights.bin").write_bytes(bytes(240))
        (self.folder / "model" / "sub").symlink_to(self.folder / "elsewhere")
        self.bad(self.external("sub/weights.bin"), says="sub/weights.bin")

    def test_hard_link(self):
        os.link(self.folder / "outside.bin", self.folder / "model" / "weights.bin")
        self.bad(self.external("weights.bin"), says="link")

    def test_folder(self):
        (self.folder / "model" / "weights.bin").mkdir()
        self.bad(self.external("weights.bin"), says="weights.bin")

    def test_pipe(self):
        os.mkfifo(self.folder / "model" / "weights.bin")
        self.bad(self.external("weights.bin"), says="weights.bin")

    def test_device(self):
        self.bad(self.external("/dev/zero"), says="/dev/zero")

    def test_empty_location(self):
        self.bad(self.external(""), says="location")


if __name__ == "__main__":
    unittest.main()
