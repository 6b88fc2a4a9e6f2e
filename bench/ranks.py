"""GPTs, AdamW, f32, on two ranks of one thread: the time of one training step and its memory, Titan's ddp and fsdp beside PyTorch's DDP and FSDP2.

    ranks.py [--rows char,gpt2-64] [--only titan,fsdp] [--rounds 5] [--save]

The ranks of a contender share the batch of a row, and the two CPUs on which the contenders of one process have two threads. Ranks of PyTorch meet over
gloo. All start from the same weights; the first losses of each are those of PyTorch's one process.
"""
import argparse
import statistics
import sys

import gpt
from side_by_side import add_contenders, add_options, add_rows, against_other_build, chosen, memory, of_other_build, parse_options, ratios, table

import protocol

ROWS = {"char": 1.15, "gpt2-64": 1.4}  # rows of gpt.py; what ddp may take of the time of one process at most
FSDP_LIMIT = 0.65  # of FSDP2's time


def contenders_of(folder, precision, arguments):
    def titan(strategy, tools):
        return ["gpt/titan.py", folder, precision, tools, *strategy]

    strategies = {"Titan": [], "Titan ddp": ["ddp"], "Titan fsdp": ["fsdp"]}
    other = {of_other_build(name): titan(strategy, arguments.against) for name, strategy in strategies.items()} if arguments.against else {}
    return {"PyTorch eager": ["gpt/pytorch.py", folder, precision]} | {name: titan(strategy, arguments.tools) for name, strategy in strategies.items()} | {
        "PyTorch DDP": ["gpt/pytorch_ranks.py", folder, precision, "ddp"],
        "PyTorch FSDP2": ["gpt/pytorch_ranks.py", folder, precision, "fsdp2"]} | other


def ratio_rows(row, contenders):
    """Markdown: what the times of ranks are a part of, and what they should be at most."""
    def median(name, base):
        parts = ratios(contenders, name, base)
        return statistics.median(parts) if parts else None

    alone = median("Titan", "PyTorch eager")
    limits = [("Titan fsdp", "PyTorch FSDP2", FSDP_LIMIT, ""), ("Titan ddp", "PyTorch DDP", alone, ": Titan / PyTorch eager"),
              ("Titan ddp", "Titan", ROWS[row], "")]
    rows = ["| median over rounds | | wanted: at most |", "|---|---|---|"]
    for name, base, limit, why in limits:
        found = median(name, base)
        if found is not None and limit is not None:
            rows.append(f"| {name} / {base} | {found:.2f} | {limit:.2f}{why} |")
    return rows if len(rows) > 2 else []


def short(label):
    """`wait for all_gather : a, b, c` as `wait for all_gather of a … c (3)`."""
    what, _, listed = label.partition(" : ")
    names = listed.split(", ")
    return f"{what} of {names[0]} … {names[-1]} ({len(names)})" if len(names) > 1 else f"{what} of {listed}" if listed else what


def exchange_lines(contender):
    """Where Titan's ranks wait and copy, as the first rank's profile says."""
    said = contender.get("exchanges")
    if not said:
        return []
    longest = "; ".join(f"{row['seconds'] * 1e3:.1f} ms {short(row['label'])}" for row in said["longest"])
    return [f"- {contender['name']}: {said['collectives'] * 1e3:.1f} ms of collectives and {said['copies'] * 1e3:.1f} ms of copies in a profiled step of "
            f"{said['step'] * 1e3:.1f} ms: {longest}"]


def text_of(result):
    contenders = result["contenders"]
    rows = table(contenders, result["wrong"] | result["skipped"], gpt.speed(result) | memory("GB", 1e9, 2))
    parts = [[*gpt.heading_of(result), *rows], ratio_rows(result["row"], contenders), sum(map(exchange_lines, contenders), [])]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n" + against_other_build(contenders)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_rows(parser, ROWS)
    add_options(parser, rounds=5, steps=0)
    add_contenders(parser)
    arguments = parse_options(parser, steps=1)
    what = f"GPTs, AdamW, {protocol.THREADS} threads: those of one process, or of {protocol.RANKS} ranks"
    return gpt.run("ranks", what, chosen(parser, arguments.rows, ROWS), ["f32"], arguments, contenders_of, text_of)


if __name__ == "__main__":
    sys.exit(main())
