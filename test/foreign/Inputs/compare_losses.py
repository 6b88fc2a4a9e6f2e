"""compare_losses.py A B TOLERANCE [LEFT]: two runs have the same losses, up to a relative tolerance, and of the first ones the
last are less than LEFT, two thirds unless told."""
import json
import sys

rows = ([json.loads(line) for line in open(f"{run}/metrics.jsonl")] for run in sys.argv[1:3])
a, b = ([row["loss"] for row in lines if "loss" in row] for lines in rows)
tolerance = float(sys.argv[3])
left = float(sys.argv[4]) if len(sys.argv) > 4 else 2 / 3
assert len(a) == len(b) >= 20, f"{len(a)} and {len(b)} losses"
for step, (x, y) in enumerate(zip(a, b)):
    assert abs(x - y) <= tolerance * abs(y), f"step {step}: {x} and {y}"
assert sum(a[-5:]) < left * sum(a[:5]), f"the loss does not fall: {a}"
print(f"{len(a)} losses agree, from {a[0]} to {a[-1]}")
