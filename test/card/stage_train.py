"""Jobs train on the card: PyTorch's losses, bits that repeat, runs that are killed, and runs that go from device to device."""
import random
import signal
import subprocess
import time

import stage
import titan_job

STEPS = stage.DESCRIPTION["steps"]
LONG = stage.DESCRIPTION["long"]  # steps of the run that is killed
SAVED = ("--set", "checkpoint.every=7")


def losses(name, out, steps=STEPS, *options, target="cuda"):
    return [row["loss"] for row in titan_job.train(stage.job(name, target), out, stage.data(name), steps, 2, *options)]


def state(out, step):
    """The bytes of what a checkpoint holds of model, optimizer and averages."""
    folder = out / "checkpoints" / f"step-{step:08d}"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*.safetensors"))}


def near(name, found):
    """Within the tolerance of the losses that the pack has: PyTorch's, or the CPU's."""
    recorded = stage.DESCRIPTION["jobs"][name]
    expected, most = recorded["losses"], recorded["tolerance"]
    if len(found) != len(expected):
        raise stage.Failed(f"{len(found)} losses, expected {len(expected)}")
    worst = max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, expected))
    facts = {"relative": worst, "most": most, "of": recorded["losses_of"], "found": found, "expected": expected}
    if not worst <= most:
        raise stage.Failed(f"losses differ by {worst:.1e} of {recorded['losses_of']}, at most {most:.0e} is allowed", facts)
    return facts


def same(what, found, expected):
    """Losses and states with equal bits."""
    if found[0] != expected[0]:
        step = next(i for i, (a, b) in enumerate(zip(*(pair[0] for pair in (found, expected)))) if a != b) + 1
        raise stage.Failed(f"{what}: the loss of step {step} is {found[0][step - 1]!r}, and was {expected[0][step - 1]!r}")
    if not expected[1]:
        raise stage.Failed(f"{what}: no state was saved")
    if found[1] != expected[1]:
        wrong = [name for name in expected[1] if found[1].get(name) != expected[1][name]]
        raise stage.Failed(f"{what}: equal losses, but another state in {', '.join(wrong)}")


def trains(name, work):
    """The losses, then again: a second fresh run, and one command by command with poison, have the bits of the first, which is a graph from its
    second step on."""
    def run(out, *options):
        return losses(name, work / out, STEPS, *options), state(work / out, STEPS)
    first = run(f"{name}-first")
    facts = near(name, first[0])
    same("a second fresh run", run(f"{name}-again"), first)
    same("walked with --poison", run(f"{name}-walk", "--poison"), first)
    return facts | {"files": len(first[1])}


def interrupted(name, out, draw):
    """Whether a run was killed before its end."""
    metrics = out / "metrics.jsonl"
    before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    target = before + draw.randint(3, LONG // 5)
    process = subprocess.Popen([stage.job(name), "train", "--out", out, "--data", stage.data(name), "--steps", str(LONG), *SAVED],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= target:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.0005)
    process.communicate()
    return len(titan_job.losses_of(out)) < LONG


def resume(name, work):
    alone, out = work / f"{name}-alone", work / f"{name}-killed"
    expected = losses(name, alone, LONG, *SAVED)
    stops = sum(interrupted(name, out, random.Random(seed)) for seed in range(3))
    found = losses(name, out, LONG, *SAVED)
    same("killed and resumed", (found, state(out, LONG)), (expected, state(alone, LONG)))
    if stops == 0:
        raise stage.Failed("no run was killed before its end: the job is too short")
    return {"killed": stops, "steps": LONG}


def devices(name, work):
    """CPU, card, CPU, card."""
    out = work / f"{name}-devices"
    for quarter, target in enumerate(("cpu", "cuda", "cpu", "cuda"), start=1):
        found = losses(name, out, STEPS * quarter // 4, target=target)
    return near(name, found)


def products(name, work):
    """The vendor's products beside those of the job: the losses, and the bits of a second run."""
    if "cublaslt" not in stage.said([stage.job(name), "train", "--help"])[1]:
        raise stage.Skipped("this version of jobs has no product library")

    def run(out, gemm):
        return losses(name, work / out, STEPS, f"--gemm={gemm}"), state(work / out, STEPS)
    own = run(f"{name}-generated", "generated")
    try:
        first = run(f"{name}-cublaslt", "cublaslt")
    except titan_job.Failure as reason:
        if str(reason).startswith("exit 3 "):
            raise stage.Skipped(str(reason).strip().splitlines()[-1].strip()) from None
        raise
    same("a second fresh run by cuBLASLt", run(f"{name}-cublaslt-again", "cublaslt"), first)
    return {"generated": near(name, own[0]), "cublaslt": near(name, first[0])}


def compare(name):
    if not stage.DESCRIPTION["jobs"][name]["reference_kernels"]:
        raise stage.Skipped("the job was packed without reference kernels")
    if " compare" not in stage.said([stage.job(name), "--help"])[1]:
        raise stage.Skipped("this version of jobs has no command compare")
    # Its bounds are those of the job's own kernels: a library rounds elsewhere.
    code, output = stage.said([stage.job(name), "compare", "--steps", "2", "--data", stage.data(name), "--gemm=generated", "--attention=generated"])
    lines = output.strip().splitlines()
    if code != 0:
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}", lines[-20:])
    return {"said": lines[-20:]}


def main():
    report, work = stage.begin()
    jobs = stage.DESCRIPTION["jobs"]
    report.check_all([(f"{name}: losses; bits again, and walked with --poison", trains, name, work) for name in jobs], stage.AT_ONCE)
    report.check_all([(f"{name} on CPU, card, CPU, card", devices, name, work) for name, job in jobs.items() if job["cpu"]], stage.AT_ONCE)
    report.check_all([(f"{name} by both kinds of products", products, name, work) for name in stage.DESCRIPTION["products"]], stage.AT_ONCE)
    report.check_all([(f"compare {name}", compare, name) for name in stage.DESCRIPTION["compared"]], stage.AT_ONCE)
    for name in stage.DESCRIPTION["resumed"]:
        report.check(f"{name} killed and resumed", resume, name, work)


if __name__ == "__main__":
    main()
