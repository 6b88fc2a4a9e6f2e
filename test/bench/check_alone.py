"""Benchmarks that need no PyTorch: what prepare_alone.py leaves is compiled and trained, and the tables have their figures.

    check_alone.py --tools BIN
"""
import argparse
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.dont_write_bytecode = True
sys.path[:0] = [str(BENCH), str(BENCH / "contenders")]
import checkpoint  # noqa: E402
import with_titan  # noqa: E402

TOOLS = Path()


class Problem:
    """What a recipe asks of a problem."""
    LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1


def bench(name, *arguments, tools=None):
    return subprocess.run([sys.executable, "-B", BENCH / f"{name}.py", "--tools", tools or TOOLS, *map(str, arguments)], capture_output=True, text=True)


def cells_of(output, start):
    """The cells behind the first one of the table's row that begins so."""
    row = next(line for line in output.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


class Alone(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="titan-bench-test-")
        self.folder = Path(self.scratch.name)
        self.addCleanup(self.scratch.cleanup)

    def job(self, benchmark, batch, data, *row):
        """The job of what `benchmark` prepares, and its plan."""
        script = BENCH / "contenders" / benchmark / "prepare_alone.py"
        subprocess.run([sys.executable, "-B", script, self.folder, *map(str, row)], check=True, env=dict(os.environ, PYTHONPATH=str(script.parents[1])))
        recipe = self.folder / "train.toml"
        recipe.write_text(with_titan.recipe(Problem, batch, batch, data))
        model, *options = with_titan.model_of(self.folder)
        job = with_titan.Job(TOOLS, model, recipe, self.folder / "job", self.folder / data, *options)
        return job, json.loads(with_titan.run([job.path, "plan", "--json"]))

    def parameters(self, plan):
        return plan["memory"]["state"]["param"] // 4

    def test_a_gpt_trains_on_what_is_prepared(self):
        job, plan = self.job("gpt", 1, "tokens.bin", "char", 1, 64)
        self.assertEqual(self.parameters(plan), 6 * (12 * 384 * 384 + 13 * 384) + 2 * 384 + (256 + 256) * 384)
        self.assertGreater(job.first_steps(1)[0]["loss"], 0)

    def test_a_llama_is_planned_without_its_memory(self):
        _, plan = self.job("gpt", 1, "tokens.bin", "llama", 1, 128)
        block = 2048 * (2048 + 512 + 512 + 2048 + 3 * 8192) + 2 * 2048
        self.assertEqual(self.parameters(plan), 16 * block + 2048 + 128256 * 2048)

    def test_a_resnet_trains_on_what_is_prepared(self):
        job, plan = self.job("families", 2, "data.npz", "resnet18")
        # The large one has a first convolution of 7 x 7, and 1000 classes.
        self.assertEqual(self.parameters(plan), 11689512 - 3 * 64 * (49 - 9) - 990 * 513)
        self.assertGreater(job.first_steps(1)[0]["loss"], 0)

    def test_the_mlp_has_its_row(self):
        done = bench("mlp", "--alone", "--rounds", 1, "--steps", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(float(cells_of(done.stdout, "Titan ")[0]), 0)

    def test_two_builds_take_turns(self):
        done = bench("mlp", "--alone", "--rounds", 1, "--steps", 3, "--against", TOOLS)
        self.assertRegex(done.stdout, r"this build / Titan of --against: median \d")

    def test_compilations_have_their_row(self):
        done = bench("compile", "--rows", "gpt-2", "--rounds", 1, "--against", TOOLS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("gpt-2", "gpt-2 of --against"):
            empty, full, *_ = cells = cells_of(done.stdout, f"{name} `nn:gpt")
            self.assertLess(float(full), float(empty))
            state, arena = (float(re.sub(" GB", "", cell)) for cell in cells[-3:-1])
            self.assertLess(state, arena)

    def test_a_compiler_that_fails_has_its_reason(self):
        tool = self.folder / "titan-compile"
        tool.write_text("#!/bin/sh\necho 'error: not today' >&2\nexit 1\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        done = bench("compile", "--rows", "gpt-2", "--rounds", 1, tools=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(cells_of(done.stdout, "gpt-2 ")[0], "not measured: error: not today")

    def test_what_cannot_be_asked_for(self):
        for arguments, says in [(("families", "--alone", "--rows", "lstm"), "--alone: titan-compile knows none of lstm by name"),
                                (("gpt", "--rows", "llama-128"), "'llama-128' is none of char, gpt2-64, gpt2-256"),
                                (("mlp", "--alone", "--save"), "--save keeps runs beside peers"),
                                (("compile", "--rows", "gpt-3"), "'gpt-3' is none of gpt-2, gpt-12")]:
            done = bench(*arguments)
            self.assertEqual((done.returncode, says in done.stderr), (2, True), done.stderr)


class Saves(unittest.TestCase):
    def measured(self, *seconds, committed):
        """A run of steps that take so long, with a save behind the first one counted that is there behind step `committed`."""
        first = checkpoint.DISCARDED + 1
        found = checkpoint.Measured()
        save = {"step": first, "stall": 0.1, "write": 1.0, "cpu": 0.5, "bytes": 8, "committed_after_step": first + committed}
        found.add([{"step": first + i, "seconds": each, "loss": 1.0} for i, each in enumerate(seconds)] + [save], peak=1)
        return found

    def test_steps_beside_a_save_are_compared_with_others_of_their_run(self):
        self.assertEqual(checkpoint.beside_a_save(self.measured(2.0, 3.0, 3.0, 2.0, committed=2)), "+50.0 %")

    def test_what_has_no_such_steps_says_so(self):
        self.assertEqual(checkpoint.beside_a_save(self.measured(2.0, committed=0)), "not measured: no step while it writes")
        found = self.measured(2.0, 3.0, committed=1)
        found.quiet.clear()
        self.assertEqual(checkpoint.beside_a_save(found), "not measured: a save at each step")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=Path, required=True)
    arguments, rest = parser.parse_known_args()
    TOOLS = arguments.tools.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
