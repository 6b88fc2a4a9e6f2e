#!/usr/bin/env python3
"""scripts/install-cuda with a pip that fetches nothing: what is asked for, what is there already, what is refused."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "install-cuda"

# Stands in for `python3 -m pip`: writes what a wheel of that name would, and notes the name in ASKED.
PYTHON = """\
#!/bin/bash
[ "$1 $2" = "-m pip" ] || exit 9
[ "$3" = install ] || exit 0
while [ $# -gt 1 ]; do [ "$1" = --target ] && folder=$2; shift; done
echo "$1" >>"$ASKED"
case "$1" in "$REFUSED"*) echo "ERROR: No matching distribution found for $1"; exit 1 ;; esac
name=${1%%==*}
mkdir -p "$folder/${name//-/_}-${1##*==}.dist-info" "$folder/nvidia/cu13/lib" "$folder/nvidia/cu13/bin" "$folder/nvidia/cu13/include"
case "$1" in
  nvidia-cuda-nvcc*) touch "$folder/nvidia/cu13/bin/ptxas" ;;
  nvidia-cuda-runtime*) touch "$folder/nvidia/cu13/include/cuda.h" ;;
esac
"""


class InstallCudaTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.folder, self.asked, python = self.scratch / "cuda", self.scratch / "asked", self.scratch / "python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        self.variables = {**os.environ, "TITAN_PYTHON": str(python), "ASKED": str(self.asked), "REFUSED": "nothing"}

    def install(self, *arguments, **more):
        done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=self.variables | more)
        return done.returncode, done.stdout.splitlines(), done.stderr.strip()

    def packages(self):
        return [line.split("==")[0] for line in self.asked.read_text().splitlines()] if self.asked.exists() else []

    def test_all_parts_and_their_variables(self):
        code, output, _ = self.install(self.folder)
        self.assertEqual(code, 0)
        self.assertEqual(self.packages(), ["nvidia-cuda-nvcc", "nvidia-nvjitlink", "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cuda-runtime",
                                           "nvidia-cuda-crt", "nvidia-cudnn-frontend"])
        place = f"{self.folder}/nvidia/cu13"
        self.assertEqual(output[-3:], [f"export TITAN_CUDA_LIBRARIES={place}/lib", f"export PATH={place}/bin:$PATH",
                                       f"# headers: cmake --preset dev -DTITAN_CUDA_INCLUDE={place}/include"])

    def test_what_is_there_is_not_fetched_again(self):
        self.install("--only", "nvcc", self.folder)
        code, output, _ = self.install("--only", "nvcc,nvjitlink", self.folder)
        self.assertEqual(code, 0)
        self.assertEqual(self.packages(), ["nvidia-cuda-nvcc", "nvidia-nvjitlink"])
        self.assertRegex(output[0], "^install-cuda: nvidia-cuda-nvcc==[0-9.]+ is there$")

    def test_a_package_that_does_not_install_is_named(self):
        code, _, error = self.install("--only", "cublas", self.folder, REFUSED="nvidia-cublas")
        self.assertEqual(code, 3)
        self.assertRegex(error, "^install-cuda: nvidia-cublas==[0-9.]+ does not install: ERROR: No matching distribution found for nvidia-cublas==[0-9.]+$")

    def test_usage(self):
        for arguments, code, text in ((["--only", "nvrtc", self.folder], 2, "unknown part 'nvrtc': use nvcc, nvjitlink, cublas, cudnn, headers"),
                                      (["--onyl"], 2, "unknown option --onyl: see --help"), (["--only"], 2, "--only wants a list of: nvcc nvjitlink cublas cudnn headers"),
                                      (["a", "b"], 2, "one folder at most: see --help"), (["/proc/none"], 3, "cannot make the folder '/proc/none'")):
            self.assertEqual(self.install(*arguments)[::2], (code, f"install-cuda: {text}"))
        self.assertEqual(self.packages(), [])

    def test_without_pip(self):
        code, _, error = self.install(self.folder, TITAN_PYTHON="/bin/false")
        self.assertEqual([code, error], [3, "install-cuda: /bin/false has no pip: apt-get install python3-pip, or set TITAN_PYTHON"])


if __name__ == "__main__":
    unittest.main()
