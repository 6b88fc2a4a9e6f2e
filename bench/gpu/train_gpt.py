#!/usr/bin/env python3
"""GPT or Llama on a card: a job of Titan beside PyTorch, eager and compiled, in one run.

    train_gpt.py ROW.json JOB [--only 'titan,eager,compile,titan again,titan tuned'] [--work DIR] [--json FILE] [--seconds N]

ROW.json: model (gpt2, llama), batch, length, layers, width, heads, positions, vocabulary, tokens (that occur), token_type (uint16, or what else the
file of tokens holds); of a Llama key_heads and hidden. JOB: compiled of problem.recipe(). The contenders run one
after the other, since two of them may not fit a card; Titan runs before and behind the others, so that a card that slows down is seen, and once
more with the algorithms that `JOB tune` finds to be fastest. All start
from the weights that the job draws. The row's `contenders` leaves some out. Who is not
through after --seconds is ended and listed as failed. Exit 1: a contender's losses are not Titan's, or Titan does not run.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "training"), str(HERE.parent.parent / "test" / "training")]
import problem  # noqa: E402
import titan_job  # noqa: E402

CONTENDERS = ("titan", "eager", "compile", "titan again", "titan tuned")
end = math.inf  # of the time for all
KEPT, SHOWN = 40, 12  # kernels, the longest
# Of a card's data sheet, by a part of its name: FLOP/s of dense bf16, bytes/s of memory.
PEAKS = {"H200": (989e12, 4.8e12), "H100 80GB HBM3": (989e12, 3.35e12), "A100-SXM4-80GB": (312e12, 2.039e12)}


class Watched:
    """The most memory of the card that is in use while a block runs, as nvidia-smi says; None where it does not."""

    def __enter__(self):
        self.most, self.done = None, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def watch(self):
        while not self.done.wait(2):
            try:
                said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20)
                self.most = max(self.most or 0, int(said.stdout.split()[0]) << 20)
            except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
                return


def left():
    """Seconds; a Failure where there are none."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        raise titan_job.Failure("the time was over before it began")
    return min(seconds, 3600)


def train(job, out, tokens, steps, *options):
    titan_job.run([job, "train", "--out", out, "--data", tokens, "--steps", steps, *options], left())
    return titan_job.metrics_of(out)


def first_weights(job, work, tokens):
    """A folder with the weights that the job draws: those behind one step of a rate that changes none."""
    out = work / "weights"
    train(job, out, tokens, 1, "--set", "optimizer.lr=1e-38")
    return out / "checkpoints" / "step-00000001" / "model"


def titan(job, work, tokens, name):
    steps = problem.CHECKED + problem.WARM_UP + problem.MEASURED
    out = work / name.replace(" ", "-")
    rows = train(job, out, tokens, steps)
    shutil.rmtree(out / "checkpoints", ignore_errors=True)  # 15 GB of a Llama: the disk holds few
    return {"losses": [row["loss"] for row in rows[:problem.CHECKED]], "seconds": [row["seconds"] for row in rows[-problem.MEASURED:]],
            "first_step": rows[0]["seconds"]}


def tuned(job, work, tokens, name):
    """Titan with what `tune` writes beside the job, and no other run is to find there."""
    if " tune" not in titan_job.run([job, "--help"]):
        raise titan_job.Failure("this version of jobs has no command tune")
    titan_job.run([job, "tune"], left())
    try:
        return titan(job, work, tokens, name)
    finally:
        job.with_name(job.name + ".tuning.json").unlink(missing_ok=True)


def pytorch(row, weights, tokens, mode):
    limit = left()
    try:
        done = subprocess.run([sys.executable, HERE / "with_pytorch.py", row, weights, tokens, mode], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise titan_job.Failure(f"still running after {limit:.0f} s") from None
    if done.returncode != 0:
        raise titan_job.Failure(((done.stdout + done.stderr).strip().splitlines() or [f"exit {done.returncode}"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def card():
    """{name, peak_flops, peak_bytes_per_second} as far as they are known."""
    try:
        name = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, timeout=20).stdout.strip().split("\n")[0]
    except (OSError, subprocess.TimeoutExpired):
        name = ""
    flops, speed = next((peaks for part, peaks in PEAKS.items() if part in name), (None, None))
    return {"name": name or "unknown", "peak_flops": flops, "peak_bytes_per_second": speed}


def profile(job, work, tokens, peaks):
    """What the job's own profile says: groups, bound, and the longest kernels, with their shares of what memory can do."""
    said = json.loads(titan_job.run([job, "profile", "--steps", "3", "--json", "--data", tokens, "--trace", work / "trace.json"], left()))
    copied, peak = max(said["copy_bytes_per_second"].values()), peaks["peak_bytes_per_second"]
    said["kernels"] = sorted(said["kernels"], key=lambda kernel: -kernel["seconds"])[:KEPT]
    for kernel in said["kernels"]:
        speed = kernel["bytes"] / kernel["seconds"]
        kernel |= {"bytes_per_second": speed, "of_copy": speed / copied, "of_peak": speed / peak if peak else None}
    return said


def kernel_table(said):
    """The longest kernels: time of a step, bytes a second, as shares of a copy in the same run and of the data sheet, and arithmetic."""
    lines = [f"{'ms/step':>9} {'share':>6} {'calls':>6} {'GB/s':>7} {'of copy':>8} {'of peak':>8} {'TFLOP/s':>8}  kernel"]
    for kernel in said["kernels"][:SHOWN]:
        seconds, peak = kernel["seconds"] / said["steps"], kernel["of_peak"]
        lines.append(f"{seconds * 1e3:9.3f} {seconds / said['profiled_seconds_per_step']:6.1%} {kernel['calls'] / said['steps']:6.0f} "
                     f"{kernel['bytes_per_second'] * 1e-9:7.0f} {kernel['of_copy']:8.1%} {format(peak, '8.1%') if peak else '        '} "
                     f"{kernel['flops'] / kernel['seconds'] * 1e-12:8.2f}  {kernel['label'][:90]}")
    return "\n".join(lines)


def attempt(function, *arguments):
    """What a contender answers, or why it does not."""
    try:
        with Watched() as watched:
            answer = function(*arguments)
        return answer | {"card_bytes": watched.most}
    except titan_job.Failure as reason:
        return {"failed": str(reason)}


def judge(found, row, model_flops, peak_flops):
    """Adds medians, tokens a second, ratios and MFU; names those whose losses are not Titan's."""
    expected, wrong = found["titan"].get("losses"), []
    for name, answer in found.items():
        if "failed" in answer:
            continue
        if expected and any(not abs(a - b) <= problem.TOLERANCE * abs(b) for a, b in zip(answer["losses"], expected)):
            answer["failed"] = f"losses {answer['losses']}, Titan's are {expected}"
            wrong.append(name)
            continue
        answer["median_seconds"] = statistics.median(answer["seconds"])
        answer["spread"] = (max(answer["seconds"]) - min(answer["seconds"])) / answer["median_seconds"]
        answer["tokens_per_second"] = row["batch"] * row["length"] / answer["median_seconds"]
        answer["mfu"] = model_flops / answer["median_seconds"] / peak_flops if peak_flops else None
        answer["against_titan"] = answer["median_seconds"] / found["titan"].get("median_seconds", answer["median_seconds"])
    return wrong


def table(found):
    lines = [f"{'':12} {'ms a step':>10} {'tokens/s':>10} {'/ Titan':>8} {'MFU':>6} {'spread':>7} {'first s':>8} {'GB':>6}"]
    for name, answer in found.items():
        if "failed" in answer:
            lines.append(f"{name:12} {answer['failed']}")
            continue
        memory = max(answer["card_bytes"] or 0, answer.get("peak_bytes", 0)) / 1e9
        mfu = format(answer["mfu"], "6.1%") if answer["mfu"] else " " * 6
        lines.append(f"{name:12} {answer['median_seconds'] * 1e3:10.1f} {answer['tokens_per_second']:10.0f} {answer['against_titan']:8.3f} "
                     f"{mfu} {answer['spread']:7.1%} {answer['first_step']:8.2f} {memory:6.1f}")
    return "\n".join(lines)


def main():
    global end
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("row", type=Path)
    parser.add_argument("job", type=Path)
    parser.add_argument("--only", default=",".join(CONTENDERS))
    parser.add_argument("--work", type=Path, default=Path("gpt-bench"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=math.inf)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    row = json.loads(arguments.row.read_text())
    only = set(arguments.only.split(",")) & set(row.get("contenders", CONTENDERS))
    arguments.work.mkdir(parents=True, exist_ok=True)
    job, work = arguments.job.resolve(), arguments.work.resolve()
    tokens = work / "tokens.bin"
    problem.write_tokens(tokens, row)
    plan, peaks = json.loads(titan_job.run([job, "plan", "--json"])), card()
    content = {"row": row, "card": peaks, "plan": plan, "contenders": {}}
    found = content["contenders"]

    def keep():
        if arguments.json:
            arguments.json.write_text(json.dumps(content, indent=1))

    weights = None
    for name in filter(only.__contains__, CONTENDERS):
        print(f"{name} ...", file=sys.stderr, flush=True)
        if name == "titan tuned":
            found[name] = attempt(tuned, job, work, tokens, name)
        elif name.startswith("titan"):
            found[name] = attempt(titan, job, work, tokens, name)
        else:
            try:
                weights = weights or first_weights(job, work, tokens)
                found[name] = attempt(pytorch, arguments.row, weights, tokens, name)
            except titan_job.Failure as reason:
                found[name] = {"failed": f"the job wrote no weights: {reason}"}
        keep()
        if name == "titan":
            content["profile"] = attempt(profile, job, work, tokens, peaks)
            keep()
    flops = plan["functions"]["step"]["model_flops"]
    wrong = judge(found, row, flops, peaks["peak_flops"]) if "titan" in found else []
    keep()
    print(f"{peaks['name']}: {row['model']}, batch {row['batch']} x {row['length']} tokens, {row['layers']} layers of {row['width']}")
    print(table(found))
    if "kernels" in content.get("profile", {}):
        ceiling, mine = content["profile"]["gemm_ceiling_flops"], found["titan"].get("median_seconds")
        if ceiling and mine:
            print(f"products at {ceiling * 1e-12:.0f} TFLOP/s in this run, of which a step of Titan is {flops / mine / ceiling:.1%}")
        print(kernel_table(content["profile"]))
    elif "profile" in content:
        print(f"profile: {content['profile']['failed']}")
    failed = [name for name in ("titan", "titan again") if "failed" in found.get(name, {})]
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
