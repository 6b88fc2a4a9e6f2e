"""MLP 784-128-10, batch 64, AdamW, f32, two threads: the time of one training step, Titan beside its peers.

All contenders start from the same weights and see the same batches; those whose first losses are not PyTorch's are named. The figure is the
median over rounds of (seconds of a round / steps); each contender is measured once a round.
"""
import argparse
import datetime
import sys
import tempfile
from pathlib import Path

from side_by_side import (CONTENDERS, add_alone, add_contenders, add_options, against_other_build, best_peer, compare, memory, milliseconds,
                          of_other_build, parse_options, prepare, processor, save, split_by_losses, table)

sys.path.insert(0, str(CONTENDERS / "mlp"))
import problem
import protocol

LOSS_TOLERANCE = 1e-4  # relative: roundings only


def contenders_of(folder, arguments):
    other = {of_other_build("Titan"): ["mlp/titan.py", folder, arguments.against]} if arguments.against else {}
    titan = {"Titan": ["mlp/titan.py", folder, arguments.tools]}
    return other | titan if arguments.alone else other | {
        "PyTorch eager": ["mlp/pytorch.py", folder],
        **titan,
        "torch.compile": ["mlp/pytorch.py", folder, "compile"],
        "JAX jit": ["mlp/jax_jit.py", folder],
        "ONNX Runtime Training": ["mlp/onnx_runtime.py", folder],
    }


def report(results, failures, arguments):
    best = best_peer(results)
    columns = milliseconds(3) | {
        "against the best peer": lambda r: f"{r['median'] / best:.2f}" if best else "",
        **memory("MB", 1e6, 0)}
    lines = [
        f"MLP {problem.FEATURES}-{problem.HIDDEN}-{problem.CLASSES}, batch {problem.BATCH}, AdamW, f32, {protocol.THREADS} threads; "
        f"{arguments.rounds} rounds of {arguments.steps} steps",
        f"{processor()[0]}, {datetime.date.today()}", "", *table(results, failures, columns)]
    return "\n".join(lines) + "\n" + against_other_build(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_options(parser, rounds=7, steps=2000)
    add_contenders(parser)
    add_alone(parser)
    arguments = parse_options(parser, steps=1000, only="titan,eager,onnx")
    with tempfile.TemporaryDirectory(prefix="titan-bench-") as temporary:
        reason = prepare("mlp/prepare_alone.py" if arguments.alone else "mlp/prepare.py", Path(temporary))
        if reason:
            print(f"bench: the MLP cannot be prepared: {reason}", file=sys.stderr)
            return 1
        results, failures = compare(contenders_of(Path(temporary), arguments), arguments, arguments.steps)
    right, wrong = split_by_losses(results, LOSS_TOLERANCE)
    text = report(right, wrong | failures, arguments)
    print(text, end="")
    if arguments.save:
        save("mlp", text)
    return 0 if right and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
