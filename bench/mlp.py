"""MLP 784-128-10, batch 64, AdamW, f32, two threads: the time of one training step, Titan beside its peers.

The figure is the median over rounds of (seconds of STEPS steps / STEPS).
"""
import argparse
import datetime
import statistics
import sys

from side_by_side import HERE, add_options, measure, processor, start

sys.path.insert(0, str(HERE / "contenders/mlp"))
import problem
import protocol

PEERS = {
    "PyTorch eager": ["mlp/pytorch.py"],
    "torch.compile": ["mlp/pytorch.py", "compile"],
    "JAX jit": ["mlp/jax_jit.py"],
    "ONNX Runtime Training": ["mlp/onnx_runtime.py"],
}


def report(contenders, skipped, arguments):
    peers = [c for c in contenders if c.name != "Titan"]
    best = min((c.median() for c in peers), default=None)
    lines = [
        f"MLP {problem.FEATURES}-{problem.HIDDEN}-{problem.CLASSES}, batch {problem.BATCH}, AdamW, f32, {protocol.THREADS} threads; "
        f"{arguments.rounds} rounds of {arguments.steps} steps",
        f"{processor()[0]}, {datetime.date.today()}", "",
        "| | ms a step, median | lowest | highest | against the best peer | first step, compilation included |",
        "|---|---|---|---|---|---|"]
    for c in contenders:
        median = c.median()
        ratio = f"{median / best:.2f}" if best else ""
        lines.append(f"| {c.name} {c.facts['version']} | {median * 1e3:.3f} | {min(c.times) * 1e3:.3f} | {max(c.times) * 1e3:.3f} "
                     f"| {ratio} | {c.facts['first_step']:.1f} s |")
    for c in contenders:
        if c.name == "Titan":
            logged = statistics.median(extra[1] for extra in c.extra)
            lines += ["", f"{c.name}'s own `seconds` in metrics.jsonl, median: {logged * 1e3:.3f} ms"]
    lines += ["", *(f"skipped: {line}" for line in skipped)] if skipped else []
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_options(parser, rounds=7, steps=2000)
    arguments = parser.parse_args()
    if arguments.rounds < 5:
        parser.error("--rounds must be at least 5")
    contenders, skipped = start({"Titan": ["mlp/titan.py", arguments.tools]} | PEERS, arguments.only)
    measure(contenders, arguments.rounds, arguments.steps)
    text = report(contenders, skipped, arguments)
    print(text, end="")
    if arguments.save:
        path = HERE / "results" / f"{datetime.date.today()}-{processor()[1]}.md"
        path.write_text("Made by `bench/run mlp --save`.\n\n" + text)
        print(f"bench: wrote {path}", file=sys.stderr)
    return 0 if contenders else 1


if __name__ == "__main__":
    sys.exit(main())
