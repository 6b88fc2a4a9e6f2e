"""GPTs, AdamW, two threads: the time of one training step and its memory, Titan beside its peers.

    gpt.py [--rows char,gpt2-64,gpt2-256] [--precision f32,bf16] [--only titan,jax] [--llm-c CHECKOUT] [--rounds 5] [--save]
    gpt.py --alone [--rows llama-128] [--against OLD/bin] ...       Titan by itself, on models that it knows by name: no PyTorch is needed

All contenders of a row start from the same weights and see the same batches; those whose first losses are not PyTorch's are named. The figure is
the median over rounds of (seconds of a round / steps). The bound of a row is that which the Titan job's `profile` prints, measured in this run:

    FLOP of the model / speed of large products + bytes of one pass over the optimizer's state / speed of copying
"""
import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path

import side_by_side
from side_by_side import (CONTENDERS, add_alone, add_contenders, add_options, add_rows, against_other_build, best_peer, chosen, compare, memory,
                          milliseconds, of_other_build, parse_options, processor, save, split_by_losses, table)

sys.path.insert(0, str(CONTENDERS / "gpt"))
import protocol

ROWS = {"char": ("char", 8, 256, 3), "gpt2-64": ("gpt2", 4, 64, 2), "gpt2-256": ("gpt2", 4, 256, 1)}  # model, batch, length, steps of a round
ALONE = {"llama-128": ("llama", 1, 128, 1)}  # rows of --alone, if asked for: 20 GB in f32
# Relative differences of the first losses from the first contender's: roundings only.
LOSS_TOLERANCE = {"f32": 1e-4, "bf16": 1e-2}


def contenders_of(folder, precision, arguments):
    other = {of_other_build("Titan"): ["gpt/titan.py", folder, precision, arguments.against]} if arguments.against else {}
    if arguments.alone:
        return other | {"Titan": ["gpt/titan.py", folder, precision, arguments.tools]}
    return other | {
        "PyTorch eager": ["gpt/pytorch.py", folder, precision],
        "Titan": ["gpt/titan.py", folder, precision, arguments.tools],
        "torch.compile": ["gpt/pytorch.py", folder, precision, "compile"],
        "JAX jit": ["gpt/jax_jit.py", folder, precision],
        "ONNX Runtime Training": ["gpt/onnx_runtime.py", folder, precision],
    } | ({"llm.c": ["gpt/llm_c.py", folder, precision, arguments.llm_c]} if arguments.llm_c and precision == "f32" else {})


def prepare(folder, name, *artifacts, script="prepare.py"):
    """The description of the row; nothing where it cannot be prepared. `artifacts`: what `script` makes for single contenders."""
    model, batch, length, _ = (ROWS | ALONE)[name]
    print(f"bench: preparing {name}", file=sys.stderr, flush=True)
    reason = side_by_side.prepare(f"gpt/{script}", folder, model, batch, length, *artifacts)
    described = folder / "row.json"
    if not described.exists():
        print(f"bench: {name} cannot be prepared: {reason}", file=sys.stderr, flush=True)
        return None
    return json.loads(described.read_text())


def run_row(name, precision, contenders, row, arguments):
    """What results/*.json says of one row and precision."""
    steps = arguments.steps or (ROWS | ALONE)[name][3]
    results, failures = compare(contenders, arguments, steps)
    bound = next((result["bound"] for result in results if result["name"] == "Titan"), None)
    right, wrong = split_by_losses(results, LOSS_TOLERANCE[precision])
    return {"row": name, "precision": precision, **row, "rounds": arguments.rounds, "steps": steps, "bound": bound,
            "contenders": right, "wrong": wrong, "skipped": failures}


def heading_of(result):
    """What all contenders of a row have in common, as lines."""
    lines = [f"### {result['row']}, {result['precision']}", "",
             (f"{result['parameters'] / 1e6:.1f}M parameters, " if "parameters" in result else "") + f"batch {result['batch']}, length {result['length']}"]
    bound = result["bound"]
    if bound:
        lines[-1] += (f"; bound {bound['seconds'] * 1e3:.1f} ms: {bound['model_flops'] / 1e9:.1f} GFLOP at {bound['gemm_ceiling_flops'] / 1e9:.0f} GFLOP/s, "
                      f"{bound['optimizer_bytes'] / 1e6:.0f} MB at {bound['optimizer_bytes'] / bound['optimizer_seconds'] / 1e9:.1f} GB/s")
    return [*lines, ""]


def speed(result):
    """Columns of a step's time."""
    tokens, bound = result["batch"] * result["length"], result["bound"]
    return milliseconds(1) | {
        "tokens/s": lambda c: f"{tokens / c['median']:.0f}",
        "share of the bound": lambda c: f"{100 * bound['seconds'] / c['median']:.0f} %" if bound else ""}


def text_of(result):
    best = best_peer(result["contenders"])
    columns = speed(result) | {
        "against the best peer": lambda c: f"{c['median'] / best:.2f}" if best else "",
        **memory("GB", 1e9, 2)}
    rows = table(result["contenders"], result["wrong"] | result["skipped"], columns)
    return "\n".join([*heading_of(result), *rows]) + "\n" + against_other_build(result["contenders"])


def record(benchmark, text, results):
    """Everything so far."""
    path = save(benchmark, text, f"-{benchmark}")
    content = {"date": str(datetime.date.today()), "processor": processor()[0], "threads": protocol.THREADS, "results": results}
    path.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def run(benchmark, what, rows, precisions, arguments, contenders_of, text_of, *artifacts, script="prepare.py"):
    """Runs all rows and prints each; returns the exit code. `what` is being compared; `contenders_of(folder, precision, arguments)` of a row, as of
    `compare`; `text_of` a result of `run_row`; `script` and `artifacts` as of `prepare`."""
    head = f"{what}; {arguments.rounds} rounds\n{processor()[0]}, {datetime.date.today()}\n"
    print(head)
    results = []
    for name in rows:
        with tempfile.TemporaryDirectory(prefix="titan-bench-") as temporary:
            folder = Path(temporary)
            row = prepare(folder, name, *artifacts, script=script)
            for precision in precisions if row else []:
                results.append(run_row(name, precision, contenders_of(folder, precision, arguments), row, arguments))
                print(text_of(results[-1]), flush=True)
                if arguments.save:
                    record(benchmark, head + "\n" + "\n".join(map(text_of, results)), results)
    ok = len(results) == len(rows) * len(precisions) and all(result["contenders"] and not result["wrong"] for result in results)
    return 0 if ok else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_rows(parser, ROWS, LOSS_TOLERANCE)
    add_options(parser, rounds=5, steps=0)
    add_contenders(parser)
    add_alone(parser)
    parser.add_argument("--llm-c", type=Path, metavar="CHECKOUT", help="llm.c, too, in f32: its CPU program, built from this checkout")
    arguments = parse_options(parser, steps=1, rows="char,gpt2-64", only="titan,eager")
    rows = chosen(parser, arguments.rows, ROWS | ALONE if arguments.alone else ROWS)
    precisions = chosen(parser, arguments.precision, LOSS_TOLERANCE)
    what = f"GPTs, AdamW, {protocol.THREADS} threads"
    if arguments.alone:
        return run("gpt", what, rows, precisions, arguments, contenders_of, text_of, script="prepare_alone.py")
    return run("gpt", what, rows, precisions, arguments, contenders_of, text_of, "ort")


if __name__ == "__main__":
    sys.exit(main())
