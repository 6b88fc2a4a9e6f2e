"""What all stages begin with: where the pack lies, the report, scratch, the time that is left."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

PACK = Path(__file__).resolve().parent
sys.path[:0] = [str(PACK), str(PACK / "training")]
from report import Failed, Report, Skipped  # noqa: E402, F401

DESCRIPTION = json.loads((PACK / "pack.json").read_text())
AT_ONCE = min(4, os.cpu_count() or 1)  # jobs that share the card
MARGIN = 3  # seconds that a stage keeps to say what it found
_end = time.monotonic()


def begin():
    """(report, scratch folder) of a stage that was started by suite.py."""
    global _end
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    _end = time.monotonic() + arguments.seconds - MARGIN
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    return Report(arguments.report), arguments.work


def left():
    """Seconds for what the stage still does."""
    return max(0.0, _end - time.monotonic())


def said(command, limit=60, **options):
    """(exit code, output and errors) of a command; a missing program is Skipped."""
    limit = min(limit, left())
    try:
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, **options)
    except FileNotFoundError:
        raise Skipped(f"no program {command[0]}") from None
    try:
        output = process.communicate(timeout=limit)[0]
        return process.returncode, output
    except subprocess.TimeoutExpired:
        # With what it started, which would keep the card busy.
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        raise Failed(f"still running after {limit:.0f} s: {' '.join(map(str, command))}", output.splitlines()[-20:]) from None


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def data(name):
    return PACK / DESCRIPTION["jobs"][name]["data"]


def job(name, target="cuda"):
    return PACK / "jobs" / f"{name}.{target}"
