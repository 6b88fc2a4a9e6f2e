"""Trains the step of step.mlir with each form of its loop and compares what is trained, bit by bit.

    compare_forms.py --tools build/dev/bin --scratch DIRECTORY
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "training"))
import titan_job

# Forms of one line train to the same bits; those of different lines do not.
SAME = [["six", "unordered", "two-by-three", "six-by-one", "one-by-six", "stack", "nested-stack"],
        ["tree", "nest", "leaves"],
        ["eight"],
        ["one", "body"]]
ADD = """
      %na = titan.add %a, %li : tensor<f32>
      %nb = titan.add %b, %ni : tensor<i64>
      %nc = titan.add %c, %dw {phase = #titan<phase backward>} : tensor<4x3xf32>"""
STEPS = 3


def row(i, count):
    """Row i of the stacks %sl and %sg as %r<i> and %q<i>."""
    return f"""
    %ri{i} = titan.slice %sl offsets [{i}] strides [1] : tensor<{count}xf32> to tensor<1xf32>
    %r{i} = titan.reshape %ri{i} : tensor<1xf32> to tensor<f32>
    %qi{i} = titan.slice %sg offsets [{i}, 0, 0] strides [1, 1, 1] : tensor<{count}x4x3xf32> to tensor<1x4x3xf32>
    %q{i} = titan.reshape %qi{i} : tensor<1x4x3xf32> to tensor<4x3xf32>"""


def forms():
    """{name: the module}"""
    step, body = (HERE / "step.mlir").read_text(), (HERE / "body.mlir").read_text()
    parts = re.split(r"^// FORM (\S+), (\d+)$", (HERE / "forms.mlir").read_text(), flags=re.M)[1:]
    modules = {}
    for name, count, loop in zip(parts[::3], parts[1::3], parts[2::3]):
        loop = re.sub(r"\$\{rows (\d+)\}", lambda m: "".join(row(i, m[1]) for i in range(int(m[1]))), loop)
        loop = loop.replace("${body}", body).replace("${add}", ADD)
        modules[name] = (step.replace("${loop}", loop).replace("${count}", count)
                         .replace("${samples}", str(8 * int(count))))
    return modules


class Forms:
    def __init__(self, tools, scratch):
        self.tools, self.scratch, self.failures = tools, scratch, []
        random = np.random.default_rng(1)
        np.savez(scratch / "data.npz", x=random.standard_normal((160, 3)).astype(np.float32),
                 targets=random.standard_normal((160, 4)).astype(np.float32))
        for name, text in forms().items():
            (scratch / f"{name}.mlir").write_text(text)

    def trained(self, command, name, *options):
        """The losses and the weights, as bytes."""
        out = self.scratch / f"{name}.run"
        titan_job.run([*command, "train", "--data", self.scratch / "data.npz", "--out", out, "--steps", STEPS, *options])
        weights = titan_job.checkpoint(out, STEPS)
        return titan_job.losses_of(out), {key: tensor.tobytes() for key, tensor in weights.items()}

    def job(self, name, *options):
        job = self.scratch / f"{name}{len(options)}"
        titan_job.run([self.tools / "titan-compile", self.scratch / f"{name}.mlir", "-o", job, *options])
        plain = self.trained([job], f"{job.name}-plain")
        poisoned = self.trained([job], f"{job.name}-poison", "--poison")
        self.expect(plain == poisoned, f"{name} with --poison")
        return plain

    def eager(self, name):
        return self.trained([self.tools / "titan-run", "--eager", self.scratch / f"{name}.mlir"], f"{name}-eager")

    def expect(self, holds, what):
        if not holds:
            self.failures.append(what)

    def compare(self, engine, train):
        results = [[train(name) for name in names] for names in SAME]
        for names, (first, *others) in zip(SAME, results):
            for name, other in zip(names[1:], others):
                self.expect(other == first, f"{engine}: {name} trains to other bits than {names[0]}")
        self.expect(results[1][0] != results[2][0], f"{engine}: a tree is a running sum")
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path)
    parser.add_argument("--scratch", required=True, type=Path)
    arguments = parser.parse_args()
    checked = Forms(arguments.tools, arguments.scratch)
    jobs = checked.compare("job", checked.job)
    eager = checked.compare("interpreter", checked.eager)
    for compiled, interpreted in zip(jobs, eager):
        checked.expect(np.allclose(compiled[0][0], interpreted[0][0], rtol=1e-5), "a job's losses are not the interpreter's")
    # What is optional changes nothing, and every pass keeps the meaning.
    unfused = [f"--disable-pass=titan-{name}" for name in ("schedule-inline-single-iteration", "lower-fuse-kernels", "plan-reuse-in-place")]
    for group, name in ((0, "six-by-one"), (0, "nested-stack"), (1, "tree"), (3, "body")):
        checked.expect(checked.job(name, *unfused) == jobs[group][0], f"{name} without optional passes")
        checked.expect(checked.job(name, "--check-passes") == jobs[group][0], f"{name} with --check-passes")
    if checked.failures:
        sys.exit("\n".join(checked.failures))


if __name__ == "__main__":
    main()
