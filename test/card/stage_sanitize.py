"""The toolkit's compute-sanitizer on a job whose buffers have allocations of their own."""
import os
import shutil

import stage

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
FOUND = 9  # the exit code that we ask for where a tool found something


def sanitize(tool, program, work):
    name = stage.DESCRIPTION["sanitized"]
    log = work / f"{tool}.log"
    command = [program, "--tool", tool, "--error-exitcode", str(FOUND), "--log-file", log, "--print-limit", "20", stage.job(name), "train", "--steps", "2",
               "--out", work / tool, "--data", stage.data(name),
               "--gemm=generated"]  # the vendor's kernels are not ours to check, and slow to
    code, output = stage.said(command, limit=60, env=os.environ | {"TITAN_CUDA_SPLIT_ARENA": "1"})
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    if code == FOUND:
        wrong = [line for line in lines if "=========" in line and "COMPUTE-SANITIZER" not in line]
        raise stage.Failed(f"{tool} found: {(wrong or ['nothing in its log'])[0].removeprefix('=========').strip()}", lines[:200])
    if "Device not supported" in "\n".join(lines) or "Device not supported" in output:
        raise stage.Skipped("compute-sanitizer: device not supported")
    if code != 0:
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}", lines[:50])
    return {"said": lines[-3:]}


def missing():
    raise stage.Skipped("no compute-sanitizer on PATH or in /usr/local/cuda/bin")


def main():
    report, work = stage.begin()
    program = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    for tool in TOOLS:
        if program:
            report.check(tool, sanitize, tool, program, work)
        else:
            report.check(tool, missing)


if __name__ == "__main__":
    main()
