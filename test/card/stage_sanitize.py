"""The toolkit's compute-sanitizer on a job whose buffers have allocations of their own."""
import os
import shutil

import stage

FOUND = 9  # the exit code that we ask for where a tool found something


def sanitize(tool, name, program, work):
    log = work / f"{tool}-{name}.log"
    command = [program, "--tool", tool, "--error-exitcode", str(FOUND), "--log-file", log, "--print-limit", "20", stage.job(name), "train", "--steps", "2",
               "--out", work / f"{tool}-{name}", "--data", stage.data(name),
               "--gemm=generated", "--attention=generated"]  # the vendor's kernels are not ours to check, and slow to
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
    for name, tools in stage.DESCRIPTION["sanitized"].items():
        for tool in tools:
            if program:
                report.check(f"{tool} of {name}", sanitize, tool, name, program, work)
            else:
                report.check(f"{tool} of {name}", missing)


if __name__ == "__main__":
    main()
