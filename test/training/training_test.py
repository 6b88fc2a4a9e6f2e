"""What tests of jobs that train have in common: the tools, a scratch folder, jobs of the references, equal bits."""
import argparse
import sys
import tempfile
import unittest
from pathlib import Path

import titan_job

HERE = Path(__file__).resolve().parent
REFERENCES = HERE / "references"
GPT_DROPOUT = HERE / "gpt-dropout"  # trained on gpt-nano's data and recipes
UNFUSED = [f"--disable-pass=titan-{name}" for name in ("lower-fuse-kernels", "lower-fuse-epilogues", "plan-reuse-in-place")]


class ToolsTest(unittest.TestCase):
    tools = Path()  # main() sets it

    def assert_same_tensors(self, found, expected, of=""):
        """{name: array} with equal bits."""
        self.assertEqual(found.keys(), expected.keys())
        for name, tensor in expected.items():
            self.assertEqual(found[name].tobytes(), tensor.tobytes(), of + name)


class TrainingTest(ToolsTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.scratch = Path(temporary.name)

    def compile(self, name, reference, recipe, *options, export="dynamo-train", models=None):
        """A job of `reference`'s recipe; its model, unless `models` is another folder with that export."""
        job = self.scratch / name
        job.parent.mkdir(exist_ok=True)
        folder = REFERENCES / reference
        titan_job.compile_job(self.tools, (models or folder) / f"{export}.onnx", folder / f"{recipe}.toml", job, *options)
        return job

    def train(self, job, out, reference, steps=20, threads=2, *options):
        """The losses and the checkpoint of a run on `reference`'s data."""
        rows = titan_job.train(job, self.scratch / out, REFERENCES / reference / "data.npz", steps, threads, *options)
        return [row["loss"] for row in rows], titan_job.checkpoint(self.scratch / out, steps)

    def assert_same_bits(self, found, expected):
        self.assertEqual(found[0], expected[0])
        self.assert_same_tensors(found[1], expected[1])


def main(description):
    """Runs the program's tests: --tools and unittest's own options."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    arguments, rest = parser.parse_known_args()
    ToolsTest.tools = arguments.tools
    unittest.main(argv=[sys.argv[0], *rest])
