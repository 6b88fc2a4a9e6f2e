#!/usr/bin/env python3
"""The stages of a pack (scripts/gpu-suite) on a machine with a card. Needs Python 3.9 and numpy; nothing is installed.

    suite.py [--out DIR] [--work DIR] [--seconds 570] STAGE...|all

DIR (default: $OUT, else ./results) gets result.json, with each check as soon as it is over, and summary.txt, whose last line counts. A stage
that fails, or takes longer than it may, never hinders the next one; what is left of --seconds is the most that a stage gets. Exit 0: all that
ran is right; 1: something is not, or a stage did not start; 2: an unknown stage.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import platform
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import report  # noqa: E402

SECONDS = {"probe": 60, "kernels": 90, "train": 120, "errors": 40, "sanitize": 90, "bench": 420}  # a stage's time limit
TOTAL = 570  # seconds of all stages: lent machines take commands of ten minutes
LEAST = 10  # seconds: with less left, a stage does not start
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib64/nvidia")  # where containers mount a driver


def library_folders():
    """Those of the wheels that this Python finds, and of a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) for root in (spec.submodule_search_locations if spec else [])]
    folders = sorted({folder for root in roots for folder in root.glob("*/lib") if list(folder.glob("*.so*"))})
    toolkit = Path("/usr/local/cuda/lib64")
    return [str(folder) for folder in [*folders, *([toolkit] if toolkit.is_dir() else [])]]


def driver_folder():
    """None where the loader finds the driver by itself, or there is none."""
    try:
        ctypes.CDLL("libcuda.so.1")
        return None
    except OSError:
        return next((folder for folder in DRIVER_FOLDERS if (Path(folder) / "libcuda.so.1").exists()), None)


def environment():
    """The variables of all stages: what is already set comes first."""
    folders = library_folders()
    named = os.environ.get("TITAN_CUDA_LIBRARIES")
    path = [os.environ.get("LD_LIBRARY_PATH"), driver_folder()]
    variables = {"TITAN_CUDA_LIBRARIES": ":".join(filter(None, [named, *folders])), "LD_LIBRARY_PATH": ":".join(filter(None, path)),
                 "PYTHONUNBUFFERED": "1"}
    return {name: value for name, value in variables.items() if value}


class Results:
    """result.json and summary.txt of a folder."""

    def __init__(self, out, variables):
        self.out = out
        self.content = {"date": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "pack": json.loads((HERE / "pack.json").read_text())["built"],
                        "machine": {"host": platform.platform(), "python": platform.python_version(), "variables": variables}, "stages": {}, "counts": {}}

    def write(self):
        stages = self.content["stages"]
        self.content["counts"] = report.counts(stages)
        report.replace(self.out / "result.json", json.dumps(self.content, indent=1))
        report.replace(self.out / "summary.txt", report.summary_text(stages))


def checks_of(path):
    return json.loads(path.read_text())["checks"] if path.exists() else []


def run_stage(stage, limit, work, variables, results):
    """Runs stage_NAME.py in a process group of its own, which ends with its time. The results grow with each check."""
    checks_file, log = work / f"{stage}.checks.json", work / f"{stage}.log"
    entry = {"status": "running", "summary": "still running", "seconds": 0, "limit": round(limit, 1), "checks": [], "errors": ""}
    results.content["stages"][stage] = entry
    print(f"{stage} (at most {limit:.0f} s)", flush=True)
    started = time.monotonic()

    def keep():
        entry.update(checks=checks_of(checks_file), seconds=round(time.monotonic() - started, 1))
        results.write()

    with log.open("w") as stream:
        process = subprocess.Popen([sys.executable, HERE / f"stage_{stage}.py", "--report", checks_file, "--work", work / stage, "--seconds", str(limit)],
                                   stdout=subprocess.PIPE, stderr=stream, env=os.environ | variables, start_new_session=True)
        late = follow(process, started + limit, keep)
    entry["errors"] = log.read_text(errors="replace")[-4000:]
    keep()
    checks = entry["checks"]
    if late:
        said = f"failed: ended after {limit:.0f} s, behind {len(checks)} checks"
    elif process.returncode != 0 or not checks:
        said = f"failed: exit {process.returncode}: {(entry['errors'].strip().splitlines() or ['it said nothing'])[-1]}"
    else:
        said = report.verdict(checks)
    entry.update(status="late" if late else said.split(":")[0].split(",")[0], summary=said)
    results.write()
    print(f"{stage}: {said} ({entry['seconds']:.0f} s)", flush=True)


def follow(process, deadline, heard):
    """Passes on what the process prints, and calls `heard` each time, until it ends, or its time does: then its group is ended. Returns whether
    time was first."""
    waits, late = selectors.DefaultSelector(), False
    waits.register(process.stdout, selectors.EVENT_READ)
    while True:
        if not waits.select(max(0, deadline - time.monotonic())):
            late = True
            break
        content = os.read(process.stdout.fileno(), 1 << 16)
        if not content:
            break
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        heard()
    if late:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return late


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stages", nargs="+", metavar="STAGE", help=f"all, or {', '.join(SECONDS)}")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "results")))
    parser.add_argument("--work", type=Path, help="scratch (default: a new folder)")
    parser.add_argument("--seconds", type=float, default=TOTAL, help=f"of all stages together ({TOTAL})")
    arguments = parser.parse_args()
    unknown = [stage for stage in arguments.stages if stage not in (*SECONDS, "all")]
    if unknown:
        print(f"suite: unknown stage '{unknown[0]}': use all, {', '.join(SECONDS)}", file=sys.stderr)
        return 2
    stages = list(SECONDS) if "all" in arguments.stages else list(dict.fromkeys(arguments.stages))
    end = time.monotonic() + arguments.seconds
    arguments.out.mkdir(parents=True, exist_ok=True)
    work = (arguments.work or Path(tempfile.mkdtemp(prefix="titan-suite-"))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    variables = environment()
    results = Results(arguments.out.resolve(), variables)
    holder = subprocess.Popen([sys.executable, HERE / "hold_card.py"], stdin=subprocess.PIPE, env=os.environ | variables)
    for stage in stages:
        left = end - time.monotonic()
        if left < LEAST:
            said = f"not run: {max(0, left):.0f} of {arguments.seconds:.0f} s are left"
            results.content["stages"][stage] = {"status": "not run", "summary": said, "checks": []}
            results.write()
            print(f"{stage}: {said}", flush=True)
        else:
            run_stage(stage, min(SECONDS[stage], left), work, variables, results)
    holder.communicate()
    print((arguments.out / "summary.txt").read_text().splitlines()[-1])
    return 0 if all(stage["status"] in ("ok", "skipped") for stage in results.content["stages"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
