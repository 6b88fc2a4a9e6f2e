"""plan.test: what the plan says is what a run takes."""
import json
import re
from pathlib import Path

plan, profile = json.loads(Path("plan.json").read_text()), json.loads(Path("profile.json").read_text())
memory, step = plan["memory"], plan["functions"]["step"]
assert memory["device"] == memory["arena"] + memory["staging"], memory
row = json.loads(Path("job.run/metrics.jsonl").read_text().splitlines()[0])
assert row["memory"] == memory["device"], row

calls = Path("calls").read_text()
allocated = [int(size) for size in re.findall(r"^cuMemAlloc_v2\((\d+)", calls, re.MULTILINE)]
assert len(allocated) == 2 and allocated[1] == memory["staging"] and 0 <= allocated[0] - memory["arena"] <= 256, (allocated, memory)
pinned = sum(int(size) for size in re.findall(r"^cuMemHostAlloc\((\d+)", calls, re.MULTILINE))
assert 0 < pinned <= memory["pinned"] + 65536, (pinned, memory)  # and pages of scalars

assert profile["graphs"] == [{"function": "step", "nodes": step["launches"], "seconds": profile["graphs"][0]["seconds"]}], profile["graphs"]
first_step = calls.count("\ncuLaunchKernel(")  # a walk
assert first_step == step["launches"], (first_step, step)
assert step["launches"] > step["commands"], "a sort is several launches"
