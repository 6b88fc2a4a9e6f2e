"""Compares the communication that a job of a strategy plans with closed forms.

    ledger-of-strategies.test.py JOB P S K    JOB.plan and JOB.info are the JSON of its plan and its info; P x S ranks, K microbatches each
"""
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ranks"))
import ledger_forms

job = sys.argv[1]
replicate, shard, microbatches = map(int, sys.argv[2:])
plan = json.load(open(job + ".plan"))
info = json.load(open(job + ".info"))
shapes = {p["name"]: p["shape"] for p in info["parameters"] if p["trainable"]}
rows = [r for r in plan["communication"] if r["function"] == "step"]


def expect(found, expected, what):
    assert found == expected, f"{what}: {found}, expected {expected}"


every = {"replicate": microbatches, "shard": microbatches}
exchange = ledger_forms.Exchange("zero1" if job.startswith("zero") else "fsdp", replicate, shard, microbatches, every)
expect(ledger_forms.payload_of(rows), ledger_forms.step_payload(exchange, shapes), "payload")

for row in rows:
    ranks = math.prod({"replicate": replicate, "shard": shard}[axis] for axis in row["axes"])
    times = {"all_gather": ranks - 1, "reduce_scatter": (ranks - 1) / ranks, "all_reduce": 2 * (ranks - 1) / ranks}[row["kind"]]
    assert abs(row["wire"] - row["payload"] * times) < row["count"], row

if exchange.gathers_parameters:
    # Again for backward: not the first layer, whose input has no gradient, and not the last, which is kept.
    gathers = [r for r in rows if r["kind"] == "all_gather"]
    again = sum(r["payload"] for r in gathers if r["phase"] == "backward")
    assert 0 < again < sum(r["payload"] for r in gathers if r["phase"] == "forward"), again
    expect({r["count"] for r in gathers}, {microbatches}, "executions of gathers")

# Sources in staging: sums that live over the loop, a copy of each part that is gathered, and what is small; tensors begin at multiples of 64 bytes.
needed = sum(math.prod(shape) * 4 + 64 for shape in shapes.values()) + 4096 + 64 * 8
parts = sum(math.prod(shape) * 4 // shard + 64 for shape in shapes.values())
expect(plan["memory"]["staging"] <= needed + parts, True, f"{plan['memory']['staging']} of staging, {needed + parts} are enough")
