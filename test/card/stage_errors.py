"""What a job says on a card that it cannot use, or is asked to leave: one line, the exit code, and what stays on the disk."""
import os
import signal
import subprocess
import time

import stage
import titan_job

NAME = stage.DESCRIPTION["errors"]["job"]
OK, ENVIRONMENT, RUN_FAILED = 0, 3, 5


def refused(work, out, exit_code, text, job, *options, **variables):
    """The job ends so, its last line has the text, and nothing of a run is saved."""
    folder = work / out
    code, output = stage.said([job, "train", "--out", folder, "--steps", "2", *options], env=os.environ | variables)
    last = stage.last_line(output)
    if code != exit_code or "error: " not in last or text not in last:
        raise stage.Failed(f"exit {code}: {last}; expected exit {exit_code} and '{text}'")
    saved = [str(path.relative_to(folder)) for pattern in ("metrics.jsonl", "checkpoints/*") for path in folder.glob(pattern)]
    if saved:
        raise stage.Failed(f"exit {code} as it is to be, but there is {saved[0]}")
    return {"said": last}


def small(*options):
    return (stage.job(NAME), "--data", stage.data(NAME), *options)


def hidden(work):
    """CUDA_VISIBLE_DEVICES hides a real driver's cards, the other variable those of the tests' driver."""
    return refused(work, "hidden", ENVIRONMENT, "no card", *small(), CUDA_VISIBLE_DEVICES="", TITAN_FAKE_CUDA_DEVICES="0")


def number(work):
    return refused(work, "number", ENVIRONMENT, "there is no card 99", *small("--device=cuda:99"))


def memory(work):
    job, data = stage.DESCRIPTION["errors"]["large"], work / "large.bin"
    with data.open("wb") as stream:
        stream.truncate(job["bytes"])
    return refused(work, "memory", ENVIRONMENT, "of device memory", stage.PACK / "jobs" / job["job"], "--data", data)


def wish(work):
    return refused(work, "wish", ENVIRONMENT, "--gemm=onednn: oneDNN computes on CPUs", *small("--gemm=onednn"))


def stopped(work):
    """SIGTERM: the step ends, is saved, and the run goes on from there."""
    out = work / "stopped"
    process = subprocess.Popen([str(part) for part in (stage.job(NAME), "train", "--out", out, "--data", stage.data(NAME), "--steps", "1000000")],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for_steps(process, out / "metrics.jsonl", 3)
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        raise stage.Failed("still running 20 s after SIGTERM") from None
    finally:
        process.kill()
    done = len(titan_job.losses_of(out))
    if process.returncode != OK:
        raise stage.Failed(f"exit {process.returncode} after SIGTERM: {stage.last_line(output)}")
    titan_job.checkpoint(out, done)
    more = titan_job.train(stage.job(NAME), out, stage.data(NAME), done + 2)
    if len(more) != done + 2:
        raise stage.Failed(f"{len(more)} steps behind a stop at {done} and 2 more")
    return {"steps": done}


def wait_for_steps(process, metrics, steps):
    while process.poll() is None and stage.left() > 0:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= steps:
            return
        time.sleep(0.001)
    raise stage.Failed(f"the run ended before step {steps}: exit {process.poll()}")


def non_finite(work):
    """A rate that no weight survives: the run ends at the limit, which is the device's own count of skipped steps."""
    out = work / "non-finite"
    code, output = stage.said([stage.job(NAME), "train", "--out", out, "--data", stage.data(NAME), "--steps", "100", "--set", "optimizer.lr=1e38",
                               "--set", "train.non_finite_limit=3"])
    last = stage.last_line(output)
    if code != RUN_FAILED or "train.non_finite_limit = 3" not in last:
        raise stage.Failed(f"exit {code}: {last}; expected exit {RUN_FAILED} and the limit")
    return {"said": last}


def main():
    report, work = stage.begin()
    for check in (hidden, number, memory, wish):
        report.check(f"refused: {check.__name__}", check, work)
    report.check("stopped by SIGTERM", stopped, work)
    report.check("steps that are not finite", non_finite, work)


if __name__ == "__main__":
    main()
