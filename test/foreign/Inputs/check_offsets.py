"""check_offsets.py PLAN.mlir STEP: every offset of a printed plan is a multiple of STEP, and not all are of twice as much."""
import re
import sys

text, step = open(sys.argv[1]).read(), int(sys.argv[2])
offsets = [int(x) for x in re.findall(r"kernel.offset = (\d+)", text) + re.findall(r"kernel.buffer (\d+)", text)]
assert len(offsets) > 20, f"{len(offsets)} offsets"
assert all(x % step == 0 for x in offsets), [x for x in offsets if x % step]
assert any(x % (2 * step) for x in offsets), "the step is larger"
print(f"{len(offsets)} offsets")
