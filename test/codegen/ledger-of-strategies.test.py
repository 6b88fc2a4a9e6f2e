"""Compares the communication that a job of a strategy plans with closed forms.

    ledger-of-strategies.test.py JOB P S K    JOB.plan and JOB.info are the JSON of its plan and its info; P x S ranks, K microbatches each
"""
import json
import math
import sys

job = sys.argv[1]
replicate, shard, microbatches = map(int, sys.argv[2:])
plan = json.load(open(job + ".plan"))
info = json.load(open(job + ".info"))
is_zero = job.startswith("zero")
trained = [p for p in info["parameters"] if p["trainable"]]
gradients = 4 * sum(math.prod(p["shape"]) for p in trained)  # every dimension 0 of the model divides
rows = [r for r in plan["communication"] if r["function"] == "step"]


def payload(kind, phase, axes):
    """All bytes of the sources of such rows; each names its wire bytes."""
    total = 0
    for row in rows:
        if (row["kind"], row["phase"], row["axes"]) != (kind, phase, axes):
            continue
        ranks = math.prod({"replicate": replicate, "shard": shard}[axis] for axis in axes)
        times = {"all_gather": ranks - 1, "reduce_scatter": (ranks - 1) / ranks, "all_reduce": 2 * (ranks - 1) / ranks}[kind]
        assert abs(row["wire"] - row["payload"] * times) < row["count"], row
        total += row["payload"]
        row["seen"] = True
    return total


def expect(found, expected, what):
    assert found == expected, f"{what}: {found}, expected {expected}"


axes = [axis for axis, ranks in (("replicate", replicate), ("shard", shard)) if ranks > 1]
expect(payload("reduce_scatter", "backward", ["shard"]), gradients, "gradients to parts")
if replicate > 1:
    expect(payload("all_reduce", "backward", ["replicate"]), gradients // shard, "parts summed")
    expect(payload("all_reduce", "update", ["shard"]), 4, "squares")
    expect(payload("all_reduce", "update", axes), 20, "loss, count, stop")
else:
    expect(payload("all_reduce", "update", axes), 24, "loss, count, stop, squares")
if is_zero:
    expect(payload("all_gather", "update", ["shard"]), gradients // shard, "new parameters")
else:
    forward = payload("all_gather", "forward", ["shard"])
    expect(forward, microbatches * gradients // shard, "gathers of forward")
    # Again for backward: not the first layer, whose input has no gradient, and not the last, which is kept.
    again = payload("all_gather", "backward", ["shard"])
    assert 0 < again < forward, again
    expect({r["count"] for r in rows if r["kind"] == "all_gather"}, {microbatches}, "executions of gathers")
expect([r for r in rows if "seen" not in r], [], "rows that no form asks for")

# Sources in staging: sums that live over the loop, a copy of each part that is gathered, and what is small; tensors begin at multiples of 64 bytes.
needed = sum(math.prod(p["shape"]) * 4 + 64 for p in trained) + 4096 + 64 * 8
parts = sum(math.prod(p["shape"]) * 4 // shard + 64 for p in trained)
expect(plan["memory"]["staging"] <= needed + parts, True, f"{plan['memory']['staging']} of staging, {needed + parts} are enough")
