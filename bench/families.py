"""Model families, AdamW, two threads: the time of one training step and its memory, Titan beside its peers.

    families.py [--rows resnet18,mobilenet,unet,lstm] [--precision f32,bf16] [--only titan,eager] [--rounds 5] [--save]
    families.py --alone [--against OLD/bin] ...       Titan by itself, on the networks that it knows by name: no PyTorch is needed

All contenders of a row start from the same weights and see the same batches; those whose first losses are not PyTorch's are named. The figure is
the median over rounds of (seconds of a round / steps).
"""
import argparse
import datetime
import sys
import tempfile
from pathlib import Path

from side_by_side import (CONTENDERS, add_alone, add_contenders, add_options, add_rows, against_other_build, best_peer, chosen, compare, memory,
                          milliseconds, of_other_build, parse_options, prepare, processor, save, split_by_losses, table)

sys.path.insert(0, str(CONTENDERS / "families"))
import problem
import protocol

# Relative differences of the first losses from PyTorch's. Adam's first updates are little but signs of gradients, behind BatchNorm of noise: PyTorch's
# own two layouts differ by 3e-4.
LOSS_TOLERANCE = {"f32": 2e-3, "bf16": 2e-2}
ROWS = {"resnet18": "ResNet-18 for images of 32 x 32, batch 32", "mobilenet": "MobileNetV3-small, 96 x 96, batch 32",
        "unet": "U-Net of four levels from 32 channels, 64 x 64, GroupNorm, batch 8", "lstm": "LSTM, 2 layers of 512, 128 of 1000 words, batch 32"}
WITH_JAX = ("resnet18", "lstm")


def contenders_of(folder, name, precision, arguments):
    def of(script, *more):
        return [f"families/{script}.py", folder, name, precision, *more]
    other = {of_other_build("Titan"): of("titan", arguments.against)} if arguments.against else {}
    if arguments.alone:
        return other | {"Titan": of("titan", arguments.tools)}
    # An LSTM has no channels, and torch.compile leaves nn.LSTM to eager.
    peers = {"PyTorch, channels last": of("pytorch", "last"), "torch.compile": of("pytorch", "last", "compile")} if name != "lstm" else {}
    if name in WITH_JAX:
        peers["JAX jit"] = of("jax_jit")
    return other | {"PyTorch eager": of("pytorch"), "Titan": of("titan", arguments.tools)} | peers


def run_row(name, precision, folder, arguments):
    """The row's table as text, and whether all that ran agree."""
    results, failures = compare(contenders_of(folder, name, precision, arguments), arguments, arguments.steps)
    bound = next((result["bound"] for result in results if result["name"] == "Titan"), None)
    right, wrong = split_by_losses(results, LOSS_TOLERANCE[precision])
    best = best_peer(right)
    columns = milliseconds(1) | {
        "share of the bound": lambda r: f"{100 * bound['seconds'] / r['median']:.0f} %" if bound else "",
        "against the best peer": lambda r: f"{r['median'] / best:.2f}" if best else "",
        **memory("MB", 1e6, 0)}
    lines = [f"### {name}, {precision}", "", ROWS[name], "", *table(right, wrong | failures, columns)]
    return "\n".join(lines) + "\n" + against_other_build(right), bool(right) and not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_rows(parser, ROWS, LOSS_TOLERANCE)
    add_options(parser, rounds=5, steps=3)
    add_contenders(parser)
    add_alone(parser)
    arguments = parse_options(parser, steps=1, only="titan,eager")
    rows, precisions = chosen(parser, arguments.rows, ROWS), chosen(parser, arguments.precision, LOSS_TOLERANCE)
    if arguments.alone:
        rows = [name for name in rows if problem.ROWS[name].named]
        if not rows:
            parser.error(f"--alone: titan-compile knows none of {arguments.rows} by name")
    texts = [f"Model families, AdamW, {protocol.THREADS} threads; {arguments.rounds} rounds of {arguments.steps} steps\n"
             f"{processor()[0]}, {datetime.date.today()}\n"]
    print(texts[0])
    ok = True
    for name in rows:
        with tempfile.TemporaryDirectory(prefix="titan-bench-") as temporary:
            reason = prepare(f"families/{'prepare_alone' if arguments.alone else 'prepare'}.py", Path(temporary), name)
            if reason:
                print(f"bench: {name} cannot be prepared: {reason}", file=sys.stderr)
                ok = False
            for precision in [] if reason else precisions:
                text, agree = run_row(name, precision, Path(temporary), arguments)
                ok &= agree
                texts.append(text)
                print(text, flush=True)
                if arguments.save:
                    save("families", "\n".join(texts), "-families")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
