#!/usr/bin/env python3
"""A small pack (scripts/gpu-suite) runs on a card of the tests' driver, all stages of it; what is planted is found and named.

    check_suite.py --driver build/dev/lib/titan-fake-cuda [unittest's options]

TITAN_PRESET names the build tree that is packed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu-suite"
DRIVER = None

# Stands in for compute-sanitizer: runs the job, or finds something where PLANTED says so.
SANITIZER = """\
#!/bin/bash
while [ $# -gt 0 ]; do
  case "$1" in
    --tool) tool=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --error-exitcode) code=$2; shift 2 ;;
    --print-limit) shift 2 ;;
    *) break ;;
  esac
done
[ "$TITAN_CUDA_SPLIT_ARENA" = 1 ] || exit 7
echo "========= COMPUTE-SANITIZER" >"$log"
if [ "$tool" = "${PLANTED:-}" ]; then
  echo "========= Invalid __global__ write of size 4 bytes" >>"$log"
  exit "$code"
fi
"$@" || exit $?
echo "========= ERROR SUMMARY: 0 errors" >>"$log"
"""


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="titan-card-suite-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.pack = cls.scratch / "pack"
        done = subprocess.run([sys.executable, SCRIPT, "pack", "-o", cls.pack, "--small"], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"exit {done.returncode} of gpu-suite pack: {done.stdout}{done.stderr}")
        (cls.scratch / "bin").mkdir()
        program = cls.scratch / "bin" / "compute-sanitizer"
        program.write_text(SANITIZER)
        program.chmod(0o755)
        cls.folder = cls.scratch / "unpacked"
        cls.first = cls.start("run.sh", "all")

    @classmethod
    def variables(cls, **more):
        path = f"{cls.scratch / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "PATH": path, "TITAN_PYTHON": sys.executable, "TITAN_SUITE_DIR": str(cls.folder),
                "TITAN_CUDA_LIBRARIES": str(DRIVER), **more}

    @classmethod
    def start(cls, program, *arguments, **more):
        """(exit code, output, result.json, lines of summary.txt) of run.sh, or of suite.py in the folder that it unpacked."""
        out = Path(tempfile.mkdtemp(dir=cls.scratch))
        command = ["bash", cls.pack / "run.sh"] if program == "run.sh" else [sys.executable, cls.folder / "suite" / "suite.py"]
        done = subprocess.run([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=cls.variables(OUT=str(out), **more))
        files = sorted(path.name for path in out.iterdir())
        if files != ["result.json", "summary.txt"]:
            raise AssertionError(f"exit {done.returncode}, {files}: {done.stdout}")
        return done.returncode, done.stdout, json.loads((out / "result.json").read_text()), (out / "summary.txt").read_text().splitlines()

    def checks(self, result, stage):
        return {check["name"]: check for check in result["stages"][stage]["checks"]}

    def test_all_stages_run(self):
        code, output, result, summary = self.first
        self.assertEqual(list(result["stages"]), ["probe", "kernels", "train", "errors", "sanitize", "bench"])
        wrong = [f"{stage}: {check['name']}: {check['reason']}" for stage, entry in result["stages"].items() for check in entry["checks"]
                 if check["status"] == "failed"]
        self.assertEqual(wrong, [], output)
        self.assertTrue(result["pack"]["small"])
        count = result["counts"]
        self.assertEqual([count["stages"], count["late"], count["not_run"], count["broken"]], [6, 0, 0, 0], output)
        self.assertGreaterEqual(count["ok"], 19, output)
        self.assertEqual(summary[-1], output.splitlines()[-1])
        self.assertRegex(summary[-1], r"^6 stages: \d+ checks, \d+ ok, \d+ failed, \d+ skipped; 0 stages late, 0 not run, 0 broken$")
        self.assertEqual(code, 0)

    def test_kernels_have_the_recorded_bits(self):
        checks = self.checks(self.first[2], "kernels")
        facts = checks["kernels as packed"]["facts"]
        self.assertGreater(facts["ran"], 3)
        self.assertEqual([facts["cases"], facts["differing"]], [facts["ran"], 0])
        self.assertEqual(checks["a wrong bit is found"]["status"], "ok")
        self.assertRegex(checks["a wrong bit is found"]["facts"], r"^Cuda\w+\.\w+ \d+: operand \d+ \(\w+\), element \d+: .*; 1 of \d+ elements differ$")
        self.assertEqual(checks["tests of the device"]["facts"]["tests"], 10)
        self.assertEqual(checks["faults"]["facts"]["tests"], 2)

    def test_training_is_pytorchs_and_repeats(self):
        checks = self.checks(self.first[2], "train")
        facts = checks["relu: losses; bits again, and walked with --poison"]["facts"]
        self.assertEqual([facts["of"], len(facts["found"])], ["PyTorch's", 20])
        self.assertLess(facts["relative"], 1e-4)
        self.assertGreater(checks["relu killed and resumed"]["facts"]["killed"], 0)
        self.assertEqual(checks["relu on CPU, card, CPU, card"]["status"], "ok")

    def test_benchmark_has_medians_and_kernels(self):
        (check,) = self.checks(self.first[2], "bench").values()
        facts = check["facts"]
        for name in ("titan", "titan again"):
            self.assertGreaterEqual(len(facts["contenders"][name]["seconds"]), 5)
            self.assertGreater(facts["contenders"][name]["tokens_per_second"], 0)
        self.assertGreater(len(facts["profile"]["kernels"]), 3)
        for kernel in facts["profile"]["kernels"]:
            self.assertGreater(kernel["of_copy"], 0)

    def test_a_wrong_expected_bit_is_found_and_named(self):
        pack = self.folder / "suite"
        kept, cases = pack / "kept.cases", pack / "kernels.cases"
        shutil.copy(cases, kept)
        self.addCleanup(shutil.move, kept, cases)
        place = subprocess.run([pack / "bin" / "titan-card-kernels", kept, "--spoil", cases, "--only", "CudaGemmKernel"],
                               capture_output=True, text=True, check=True).stdout.strip()
        code, output, result, summary = self.start("suite.py", "kernels")
        self.assertEqual(code, 1, output)
        check = self.checks(result, "kernels")["kernels as packed"]
        self.assertEqual([check["status"], check["facts"]["differing"]], ["failed", 1])
        self.assertIn(place, check["reason"])
        self.assertIn(place, "\n".join(summary))
        self.assertIn(" 1 failed", summary[-1])

    def test_other_losses_are_found(self):
        path = self.folder / "suite" / "pack.json"
        kept = path.read_text()
        self.addCleanup(path.write_text, kept)
        description = json.loads(kept)
        description["jobs"]["relu"]["losses"][19] *= 1.001
        path.write_text(json.dumps(description))
        code, output, result, _ = self.start("suite.py", "train")
        self.assertEqual(code, 1, output)
        check = self.checks(result, "train")["relu: losses; bits again, and walked with --poison"]
        self.assertRegex(check["reason"], r"losses differ by 1.0e-03 of PyTorch's, at most 1e-04 is allowed")

    def test_what_the_sanitizer_finds_is_named(self):
        code, output, result, _ = self.start("suite.py", "sanitize", PLANTED="racecheck")
        self.assertEqual(code, 1, output)
        checks = self.checks(result, "sanitize")
        self.assertEqual({name: check["status"] for name, check in checks.items()},
                         {"memcheck of relu": "ok", "racecheck of relu": "failed", "synccheck of relu": "ok", "initcheck of relu": "ok"})
        self.assertEqual(checks["racecheck of relu"]["reason"], "racecheck found: Invalid __global__ write of size 4 bytes")

    def test_a_stage_that_hangs_is_ended_and_the_next_is_not_begun(self):
        path = self.folder / "suite" / "stage_probe.py"
        kept = path.read_text()
        self.addCleanup(path.write_text, kept)
        path.write_text("import signal\nimport stage\nreport, _ = stage.begin()\nreport.check('before', lambda: None)\nreport.check('hangs', signal.pause)\n")
        code, output, result, summary = self.start("suite.py", "--seconds", "10.5", "probe", "kernels")
        self.assertEqual(code, 1, output)
        self.assertEqual([result["stages"][name]["status"] for name in ("probe", "kernels")], ["late", "not run"])
        self.assertEqual(list(self.checks(result, "probe")), ["before"])
        self.assertRegex(summary[-1], "^2 stages: 1 checks, 1 ok, 0 failed, 0 skipped; 1 stages late, 1 not run, 0 broken$")

    def test_a_machine_without_a_driver_is_named(self):
        code, output, result, _ = self.start("suite.py", "kernels", LD_LIBRARY_PATH="")
        self.assertEqual(code, 1, output)
        self.assertIn("cannot load the CUDA driver: libcuda.so.1", self.checks(result, "kernels")["kernels as packed"]["reason"])

    def test_usage(self):
        for program, arguments, text in (("run.sh", [], "usage: bash run.sh STAGE...: probe kernels train errors sanitize bench, or all"),
                                         ("suite.py", ["kernel"], "suite: unknown stage 'kernel': use all, probe, kernels, train, errors, sanitize, bench")):
            command = ["bash", self.pack / "run.sh"] if program == "run.sh" else [sys.executable, self.folder / "suite" / "suite.py"]
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=self.variables())
            self.assertEqual([done.returncode, done.stderr.strip()], [2, text])

    def test_unknown_jobs_and_rows_are_refused(self):
        for option, names, text in (("--jobs", "relu,rely", "gpu-suite: no job 'rely': there are activations, "),
                                    ("--rows", "llama", "gpu-suite: no row 'llama': there are gpt2-16x1024, gpt2-64x1024, llama-8x2048\n")):
            done = subprocess.run([sys.executable, SCRIPT, "pack", "-o", self.scratch / "none", option, names], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def test_too_large_an_archive_is_refused(self):
        out = self.scratch / "large"
        done = subprocess.run([sys.executable, SCRIPT, "pack", "-o", out, "--small"], capture_output=True, text=True,
                              env={**os.environ, "TITAN_SUITE_BYTES": "1000000"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"gpu-suite: the archive has [\d.]+ MiB, and 1.0 MiB are left beside the repository's files: pack fewer jobs or kernels")
        self.assertEqual(list(out.iterdir()), [])


if __name__ == "__main__":
    DRIVER = Path(sys.argv.pop(sys.argv.index("--driver") + 1)).resolve()
    sys.argv.remove("--driver")
    unittest.main()
