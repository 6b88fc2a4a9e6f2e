#!/usr/bin/env python3
"""Rows in which each two of strategy, model, mesh, microbatches, sync, reshard, precision, optimizer and clipping meet: 20 losses and the first gradients
of one rank, and the bytes of the closed forms. Eight ranks are simulated: the interpreter runs each pass beside one rank. scripts/ranks --all runs every
strategy, model, microbatches and sync on 2, 4 and 8 ranks, with and without overlap.

    check_matrix.py --tools build/dev/bin [--seed 7] [--row 'fsdp gpt 1x2 …'] [--all [--table FILE]] [--jobs 2]
"""
import argparse
import concurrent.futures
import itertools
import random
import sys
import tempfile
import time
from pathlib import Path

from covering_array import covering_array
from matrix import FACTORS, Matrix, Outcome, cells, described, is_valid, table
from titan_job import Failure


def all_rows():
    rows = (dict(zip(FACTORS, values)) for values in itertools.product(*FACTORS.values()))
    return [row for row in rows if is_valid(row)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--row", help="runs the rows whose description has these words")
    parser.add_argument("--all", action="store_true", help="all cells instead of a covering array")
    parser.add_argument("--table", type=Path, help="with --all: Markdown of all cells")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rows = cells(arguments.seed) if arguments.all else all_rows() if arguments.row else covering_array(FACTORS, is_valid, arguments.seed)
    if arguments.row:
        rows = [row for row in rows if set(arguments.row.split()) <= set(described(row).split())]
    print(f"{len(rows)} rows, seed {arguments.seed}", flush=True)
    outcomes, start = [], time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        matrix = Matrix(arguments.tools, scratch)

        def check(row):
            try:
                return matrix.check(row)
            except Failure as failure:
                return Outcome([str(failure)])

        for row, outcome in zip(rows, pool.map(check, rows)):
            outcomes.append(outcome)
            print("\n    ".join([f"{'FAIL' if outcome.wrong else 'ok  '} {described(row)}", *outcome.wrong]), flush=True)
    if arguments.table:
        arguments.table.write_text("\n".join(table(rows, outcomes)) + "\n")
    failed = sum(bool(outcome.wrong) for outcome in outcomes)
    print(f"{len(rows) - failed} passed, {failed} failed, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
