"""check-coverage.py PAGE CORPUS...: PAGE is what titan-coverage prints for the corpora.

Where a corpus is not installed (ONNX's test data), the page may have a `yes` under *import* that this machine cannot see.
"""
import difflib
import subprocess
import sys
from pathlib import Path

ALL = "titan-coverage test/frontend/Inputs test/training /usr/share/libonnx-testdata/data/node > docs/coverage.md"


def unseen(line):
    """The line as a machine without some corpus may print it."""
    return line[:-len("yes |")] + "- |" if line.startswith("| `titan.") and line.endswith("yes |") else line


def main(page, *corpora):
    expected = Path(page).read_text().splitlines()
    actual = subprocess.run(["titan-coverage", *corpora], check=True, capture_output=True, text=True).stdout.splitlines()
    if not all(Path(corpus).is_dir() for corpus in corpora):
        expected = [unseen(line) if unseen(line) == other else line
                    for line, other in zip(expected, actual)] + expected[len(actual):]
    difference = list(difflib.unified_diff(expected, actual, page, "titan-coverage", lineterm="", n=0))
    print("\n".join(difference + [f"the page is stale: {ALL}"]) if difference else "the page is what titan-coverage prints")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
