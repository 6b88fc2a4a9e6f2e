"""count-bytes.py MODULE: what one rank hands to collectives in @step of a stage *shard*, in bytes, a line for each kind, phase and place.

    all_gather forward loop 2216224

A collective in a loop counts once an iteration. all_gather counts what a rank brings along, the others what they sum.
"""
import re
import sys
from collections import Counter

BYTES = {"f32": 4, "bf16": 2, "i64": 8, "f64": 8}


def bytes_of(types):
    total = 0
    for shape, element in re.findall(r"tensor<((?:\d+x)*)(\w+)>", types):
        count = 1
        for extent in shape.split("x")[:-1]:
            count *= int(extent)
        total += count * BYTES[element]
    return total


def main(path):
    times, counted, is_step = [1], Counter(), False
    for line in open(path):
        if "func.func" in line:
            is_step = "@step(" in line
        loop = re.search(r"accum\.loop %\w+ in (\d+) ", line)
        found = re.search(r"dist\.(all_gather|reduce_scatter|all_reduce) .*?#titan<phase (\w+)>} : (.*) to ", line)
        if is_step and found:
            kind, phase, operands = found.groups()
            counted[f"{kind} {phase} {'loop' if len(times) > 1 else 'once'}"] += times[-1] * bytes_of(operands)
        if loop:
            times.append(times[-1] * int(loop.group(1)))
        elif line.strip().startswith("}") and len(times) > 1:
            times.pop()
    for name, size in sorted(counted.items()):
        print(name, size)


if __name__ == "__main__":
    main(sys.argv[1])
