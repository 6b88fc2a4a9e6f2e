"""check-walk.py REPOSITORY PAGE SCRATCH: what PAGE quotes is what its commands print.

A block marked `sh` is run by bash in SCRATCH (emptied first; $titan is the repository). The other blocks after it quote its output: each line occurs
there, each block's lines in order, from the block's start in the output on. `…` matches any text. SSA names, map numbers, white space and numbers of four
digits or more are not compared.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path


def blocks(page):
    """(first line's number, language, lines)"""
    found, block = [], None
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            if block:
                found.append(block)
                block = None
            else:
                block = (number + 1, line[3:].strip(), [])
        elif block:
            block[2].append(line)
    return found


def normalize(line):
    line = re.sub(r"%[A-Za-z0-9_]+(:\d+)?(#\d+)?", "%", line)
    line = re.sub(r"#map\d*", "#map", line)
    line = re.sub(r"\b\d{4,}\b", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def occurs(quoted, line):
    """Is `quoted`, with its gaps, a part of `line`?"""
    return re.search(".*?".join(re.escape(part.strip()) for part in normalize(quoted).split("…")), normalize(line))


def check(lines, output):
    """The index of the first quoted line that is not in the output behind its predecessors, or None."""
    position = 0
    for index, quoted in enumerate(lines):
        while position < len(output) and not occurs(quoted, output[position]):
            position += 1
        if position == len(output):
            return index
    return None


def main(repository, page, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch)
    environment = dict(os.environ, titan=os.path.realpath(repository))
    output, quoted, wrong = [], 0, []
    for number, language, lines in blocks(Path(page).read_text()):
        if language == "sh":
            run = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], cwd=scratch, env=environment,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            output = run.stdout.decode(errors="replace").splitlines()
            if run.returncode != 0:
                wrong.append(f"{page}:{number}: exit code {run.returncode}: {' / '.join(output[-2:])}")
            continue
        quoted += len(lines)
        missing = check(lines, output)
        if missing is not None:
            wrong.append(f"{page}:{number + missing}: not in the output: {lines[missing].strip()}")
    print("\n".join(wrong) or f"{quoted} quoted lines are what the commands print")
    return 1 if wrong or not quoted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
