"""Compares the communication that a job plans with closed forms.

    ledger.test.py JOB RANKS    JOB.plan and JOB.info are the JSON of its plan and its info
"""
import json
import math
import sys

job, ranks = sys.argv[1], int(sys.argv[2])
plan = json.load(open(job + ".plan"))
info = json.load(open(job + ".info"))

trained = [p for p in info["parameters"] if p["trainable"]]
gradients = 4 * sum(math.prod(p["shape"]) for p in trained)
scalars = 4 + 8 + 8  # the loss, the count, the stop


def wire(n):
    """Bytes that come to a rank of an all_reduce of n: a reduce_scatter and an all_gather of n (r - 1) / r each."""
    return -(-2 * n * (ranks - 1) // ranks)


rows = [r for r in plan["communication"] if r["function"] == "step"]
found = [(r["function"], r["kind"], r["count"], r["payload"], r["wire"]) for r in rows]
expected = []
if ranks > 1:
    expected = [("step", "all_reduce", 1, n, wire(n)) for n in (gradients, scalars)]
assert found == expected, f"{found}, expected {expected}"
if ranks == 1:
    assert "staging" not in plan["memory"]
else:
    assert sorted(rows[0]["source"].split(", ")) == sorted(p["name"] for p in trained), rows[0]["source"]
    # Each gradient lies in staging once, at a multiple of 64 bytes, and so do the scalars.
    needed = sum(-(-4 * math.prod(p["shape"]) // 64) * 64 for p in trained) + 3 * 64
    pages = -(-needed // 4096) * 4096
    assert plan["memory"]["staging"] <= pages, f"{plan['memory']['staging']} of staging, {pages} are enough"
