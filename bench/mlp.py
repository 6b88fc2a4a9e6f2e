"""MLP 784-128-10, batch 64, AdamW, f32, two threads: the time of one training step, Titan beside its peers.

The figure is the median over rounds of (seconds of STEPS steps / STEPS).
"""
import argparse
import datetime
import sys

from side_by_side import CONTENDERS, add_options, best_peer, compare, milliseconds, parse_options, processor, save, table

sys.path.insert(0, str(CONTENDERS / "mlp"))
import problem
import protocol

PEERS = {
    "PyTorch eager": ["mlp/pytorch.py"],
    "torch.compile": ["mlp/pytorch.py", "compile"],
    "JAX jit": ["mlp/jax_jit.py"],
    "ONNX Runtime Training": ["mlp/onnx_runtime.py"],
}


def report(results, failures, arguments):
    best = best_peer(results)
    columns = milliseconds(3) | {
        "against the best peer": lambda r: f"{r['median'] / best:.2f}" if best else "",
        "peak memory": lambda r: f"{r['peak_bytes'] / 1e6:.0f} MB",
        "first step, compilation included": lambda r: f"{r['first_step']:.1f} s"}
    lines = [
        f"MLP {problem.FEATURES}-{problem.HIDDEN}-{problem.CLASSES}, batch {problem.BATCH}, AdamW, f32, {protocol.THREADS} threads; "
        f"{arguments.rounds} rounds of {arguments.steps} steps",
        f"{processor()[0]}, {datetime.date.today()}", "", *table(results, failures, columns)]
    for result in results:
        if "logged" in result:
            lines += ["", f"{result['name']}'s own `seconds` in metrics.jsonl, median: {result['logged'] * 1e3:.3f} ms"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_options(parser, rounds=7, steps=2000)
    arguments = parse_options(parser)
    results, failures = compare({"Titan": ["mlp/titan.py", arguments.tools]} | PEERS, arguments, arguments.steps)
    text = report(results, failures, arguments)
    print(text, end="")
    if arguments.save:
        save("mlp", text)
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
