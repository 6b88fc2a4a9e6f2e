#!/usr/bin/env python3
"""scripts/compare-builds itself: each difference is seeded and has to be named, and what is no difference has to pass.

    test_compare_builds.py --tools build/dev/bin [unittest's options]

A seeded build is a folder whose titan-compile calls the real one with options more.
"""
import argparse
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "training")]

import differences  # noqa: E402
import texts  # noqa: E402
import titan_job  # noqa: E402
from outcome import Outcome, Run  # noqa: E402

SCRIPT = HERE.parents[1] / "scripts" / "compare-builds"
CASE = "^relu/dynamo-train/cosine-clip/f32/native"
ASSEMBLY = """\
program relu.onnx target cpu
kernel titan_kernel_0 : flat [4]
\t.file\t"kernels"
\t.section\t.rodata.cst4,"aM",@progbits,4
.LCPI{f}_0:
\t.long\t0x{constant}                      # float 1
\t.text
\t.globl\ttitan_kernel_{k}                  # -- Begin function
titan_kernel_{k}:                           # @titan_kernel_{k}
# %bb.0:
\tvbroadcastss\t.LCPI{f}_0(%rip), %xmm0
.LBB{f}_1:
\tjne\t.LBB{f}_1
\tretq
.Lfunc_end{f}:
\t.size\ttitan_kernel_{k}, .Lfunc_end{f}-titan_kernel_{k}
"""
MODULE = """\
"builtin.module"() <{sym_name = "a"}> ({
  "func.func"() <{sym_name = "step"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "titan.add"(%arg0, %arg0) {path = ["x -> (y)"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1:2 = "accum.loop"(%0) <{count = 4 : i64}> ({
    ^bb0(%arg1: i64):
      "accum.yield"() : () -> ()
    }) : (tensor<4xf32>) -> (tensor<f32>, tensor<i64>)
    "func.return"(%1#0) : (tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


class Texts(unittest.TestCase):
    def test_a_kernel_is_its_code(self):
        found = texts.kernels(ASSEMBLY.format(f=7, k=3, constant="3f800000"))
        self.assertEqual(found, texts.kernels(ASSEMBLY.format(f=2, k=3, constant="3f800000")))
        self.assertEqual(list(found), ["titan_kernel_3"])
        self.assertIn(".long\t0x3f800000", found["titan_kernel_3"])
        self.assertIn("jne", found["titan_kernel_3"])

    def test_a_constant_is_code(self):
        self.assertNotEqual(texts.kernels(ASSEMBLY.format(f=2, k=3, constant="3f800000")),
                            texts.kernels(ASSEMBLY.format(f=2, k=3, constant="3f800001")))

    def test_ops_in_order_with_their_types(self):
        self.assertEqual(texts.ops(MODULE), [
            "builtin.module", "func.func", "titan.add -> tensor<4xf32>", "accum.loop", "accum.yield -> ()",
            "accum.loop -> (tensor<f32>, tensor<i64>)", "func.return -> ()", "func.func -> ()", "builtin.module -> ()"])


class Bits(unittest.TestCase):
    """What no equality of values sees."""

    @staticmethod
    def outcome(loss=1.0, weight=1.0, slot=0.0):
        run = Run([{"step": 1, "loss": loss}], {"model": {"w": np.full(2, weight, np.float32)},
                                                "optimizer": {"w.exp_avg": np.full(2, slot, np.float32)}})
        return Outcome(runs={"generated, 1 thread": run})

    def kinds(self, **changes):
        return [one.kind for one in differences.of_runs(self.outcome(), self.outcome(**changes))]

    def test_equal(self):
        self.assertEqual(self.kinds(), [])

    def test_one_ulp(self):
        self.assertEqual(self.kinds(loss=float(np.nextafter(1.0, 2.0))), ["losses"])
        self.assertEqual(self.kinds(weight=np.nextafter(np.float32(1), np.float32(2))), ["model"])

    def test_the_sign_of_zero(self):
        self.assertEqual(self.kinds(slot=-0.0), ["optimizer"])
        self.assertEqual(len([*differences.of_rows("", [{"loss": 0.0}], [{"loss": -0.0}])]), 1)

    def test_a_tensor_less_and_a_step_less(self):
        other = self.outcome()
        run = other.runs["generated, 1 thread"]
        run.tensors["model"].clear()
        run.rows.clear()
        self.assertEqual([one.kind for one in differences.of_runs(self.outcome(), other)], ["losses", "model"])

    def test_a_plan_without_a_number(self):
        plan = {"kernels": 3, "memory": {"arena": 64, "temporaries": 8}, "functions": {"step": {"kernels": 2, "flops": 5, "bytes": 7}}}
        less = plan | {"functions": {"step": {"kernels": 2, "flops": 5}}}
        self.assertEqual([*differences.of_plan(Outcome(plan=plan), Outcome(plan=plan))], [])
        self.assertEqual([one.detail for one in differences.of_plan(Outcome(plan=plan), Outcome(plan=less))], ["step.bytes 7 -> None"])
        with self.assertRaises(titan_job.Failure):
            [*differences.of_plan(Outcome(plan=less), Outcome(plan=less))]

    def test_a_run_that_fails(self):
        failed, lacking = (Outcome(runs={"generated, 1 thread": Run(error="no", code=code)}) for code in (5, 3))
        for pair, kinds in (((self.outcome(), failed), ["run"]), ((failed, failed), ["run"]), ((self.outcome(), lacking), ["run"]),
                            ((lacking, lacking), [])):
            self.assertEqual([one.kind for one in differences.of_runs(*pair)], kinds)


class Seeded(unittest.TestCase):
    tools = Path()

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.scratch = Path(temporary.name)

    def build(self, name, *options, first=":"):
        """A build whose titan-compile runs the shell command `first`, then the real one with `options`."""
        folder = self.scratch / name / "bin"
        folder.mkdir(parents=True)
        (folder / "titan-opt").symlink_to(self.tools / "titan-opt")
        (folder / "titan-compile").write_text(f'#!/bin/sh\n{first}\nexec {shlex.quote(str(self.tools))}/titan-compile "$@" '
                                              f"{shlex.join(options)}\n")
        (folder / "titan-compile").chmod(0o755)
        return folder.parent

    def compare(self, code, old, new, *options):
        done = subprocess.run([SCRIPT, old, new, "--only", CASE, *options], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def kinds(self, *options):
        """The kinds of differences that the summary names when the new build compiles with `options`."""
        said = self.compare(1, self.build("old"), self.build("new", *options))
        return {line.split(":")[0] for line in said.splitlines() if " of 1 cases: " in line}

    def test_a_build_is_like_itself(self):
        self.assertIn("1 alike, 0 differ", self.compare(0, self.tools.parent, self.tools.parent))

    def test_another_learning_rate(self):
        self.assertEqual(self.kinds("--set", "optimizer.lr=3.000001e-3"), {"losses", "metrics", "model", "optimizer"})

    def test_without_fusion(self):
        self.assertEqual(self.kinds("--disable-pass=titan-lower-fuse-kernels"), {"plan", "assembly"})

    def test_another_order_of_ops(self):
        self.assertIn("schedule", self.kinds("--disable-pass=titan-schedule-order-ops"))

    def test_a_build_that_refuses(self):
        old, new = self.build("old"), self.build("new", first="echo 'error: no' >&2; exit 1")
        self.assertIn("error: no", self.compare(1, old, new))
        self.assertIn("nothing was compared", self.compare(1, new, old))

    def test_an_exception_is_allowed_and_no_other(self):
        old, new = self.build("old"), self.build("new", "--disable-pass=titan-lower-fuse-kernels")
        allowed = self.scratch / "allowed.toml"
        entry = '[[allow]]\ncase = "relu/*"\nkind = "{}"\nwhy = "a test"\n'
        allowed.write_text(entry.format("plan"))
        said = self.compare(1, old, new, "--allowed", allowed)
        self.assertIn("DIFFERS: assembly; allowed: plan", said)
        allowed.write_text(entry.format("plan") + entry.format("assembly"))
        self.assertIn("0 differ", self.compare(0, old, new, "--allowed", allowed))
        allowed.write_text(entry.format("weather"))
        self.assertIn("no kind 'weather'", self.compare(1, old, new, "--allowed", allowed))

    def test_the_committed_exceptions_can_be_read(self):
        differences.read_exemptions(HERE / "allowed.toml")
        with self.assertRaises(titan_job.Failure):
            differences.read_exemptions(self.scratch / "missing.toml")

    def test_what_is_no_build(self):
        self.assertIn("is no build tree", self.compare(1, self.scratch, self.scratch))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    arguments, rest = parser.parse_known_args()
    Seeded.tools = arguments.tools.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
