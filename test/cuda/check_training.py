#!/usr/bin/env python3
"""Jobs for cuda train on a card of the tests' driver: PyTorch's losses, the CPU job's state, stopped, resumed, and on to a CPU and back.

The models are those of test/training. `./job` finds the driver by LD_LIBRARY_PATH as it finds a card's.

    check_training.py --tools build/dev/bin --driver build/dev/lib/titan-fake-cuda [--only "losses of relu"] [--jobs 2] [--seed 1]
"""
import argparse
import concurrent.futures
import functools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np

TRAINING = Path(__file__).resolve().parent.parent / "training"
sys.path.insert(0, str(TRAINING))
import check_losses  # noqa: E402
import check_random  # noqa: E402
import titan_job  # noqa: E402
from verdict import failed  # noqa: E402

# The exports of a model give one program (test/training), so one is enough here; of these models each recipe is trained.
EVERY_RECIPE = ("gpt-nano", "relu")
# Models whose table is run on kernels for the CPU too.
MODELS = ("activations", "convolutions", "decoder", "frozen", "functional", "gpt-nano", "loss-inside", "own-parameters", "recurrent", "relu", "residual", "routed",
          "segmentation", "tied", "twice-used", "words")
NARROW_MODELS = ("convolutions", "gpt-nano", "relu")  # that are compared with products of bf16, too
MODULES = TRAINING / "modules"
# Of small modules one of each family that no model above has.
FAMILIES = ("bilinear", "class-token", "experts-of-copies", "exponential-of-a-scalar", "flow-of-fresh-scales", "fresh-t5", "lora", "prelu", "straight-through", "weight-norm")
# Whose jobs are compared with jobs without fusion, bit for bit.
FUSED_MODELS = ("gpt-nano", "norm-gelu", "words")
UNFUSED = [f"--disable-pass=titan-{name}" for name in ("lower-fuse-kernels", "lower-fuse-epilogues", "plan-reuse-in-place")]
CARDS = ("sm_80", "sm_90", "sm_120")
LOSSES, NARROW = 1e-4, 1e-2  # relative, of 20 steps, between devices; with products of bf16
AVERAGES = 1e-5  # of the largest element, after 20 steps, between devices


@functools.cache
def cuda(tools):
    """Options for a job that the tests' driver runs, by its PTX: cubins took longer than all else, so there is one, where there is an assembler.
    Those of every card: `code`."""
    options, folder = ("--target=cuda", "--arch=sm_80"), check_losses.REFERENCES / "relu"
    with tempfile.TemporaryDirectory() as scratch:
        try:
            titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "adamw.toml", Path(scratch) / "job", *options)
        except titan_job.Failure as failure:
            if "takes an assembler" not in str(failure):
                raise
            return options[:1]
    return options


def options_for(tools, target):
    return cuda(tools) if target == "cuda" else (f"--target={target}",)


def relative(losses, expected, most=LOSSES):
    if len(losses) != len(expected):
        return [f"{len(losses)} losses, expected {len(expected)}"]
    worst = max(abs(a - b) / max(abs(b), 1e-30) for a, b in zip(losses, expected))
    return [f"losses differ by {worst:.1e} of them"] if not worst <= most else []


def losses(tools, folder, reference, export, recipe, scratch):
    """A model as PyTorch trained it."""
    return check_losses.check(tools, folder, reference, export, recipe, scratch, *cuda(tools))


def loss_checks(tools):
    for folder in sorted(check_losses.REFERENCES.glob("*/")):
        reference = json.loads((folder / "reference.json").read_text())
        recipes = list(reference["recipes"])
        for recipe in recipes if folder.name in EVERY_RECIPE else recipes[:1]:
            yield f"losses of {folder.name} by {recipe}", (losses, tools, folder, reference, reference["exports"][0], recipe)


def reference(tools, name, scratch):
    """The table of a card on kernels for the CPU: what the compiler decides for a card, at full speed."""
    folder, wrong = check_losses.REFERENCES / name, []
    recorded = json.loads((folder / "reference.json").read_text())
    export, recipe = next(check_losses.pairs(recorded))
    job, data, rows = scratch / "job", folder / "data.npz", {}
    titan_job.compile_job(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", job, *cuda(tools), "--reference-kernels")
    for device in ("reference", "cuda"):
        rows[device] = [row["loss"] for row in titan_job.train(job, scratch / device, data, 20, 2, f"--device={device}", "--poison")]
    wrong += relative(rows["reference"], recorded["recipes"][recipe]["f32"])
    return wrong + [f"beside the card: {line}" for line in relative(rows["reference"], rows["cuda"])]


def compare(tools, name, scratch):
    """Each command of two steps on the card and on the host."""
    folder, wrong = check_losses.REFERENCES / name, []
    export, recipe = next(check_losses.pairs(json.loads((folder / "reference.json").read_text())))
    for compute in ("f32", "bf16") if name in NARROW_MODELS else ("f32",):
        job = scratch / compute
        titan_job.compile_job(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", job, *cuda(tools), "--reference-kernels", "--set", f"precision.compute={compute}")
        found = json.loads(titan_job.run([job, "compare", "--device=cuda", "--data", folder / "data.npz", "--json"]))
        if not (found["difference"] is None and found["commands"] > 20 and 0 <= found["largest_share"] < 1):
            wrong.append(f"{compute}: {found}")
    return wrong


def entry_point(ptx, kernel):
    """Where the code of a kernel's first launch begins and ends."""
    begin = re.search(rf"^\.visible \.entry {kernel}(_\d+)?\(", ptx, re.MULTILINE).start()
    return begin, ptx.index("\n}", begin)


def broken(tools, scratch):
    """Code of a card with one kernel changed: `compare` names that kernel by its module path. The job is as it was; the driver runs other code for its cubin."""
    folder = check_losses.REFERENCES / "relu"
    job, ptx, wrong = scratch / "job", scratch / "broken.ptx", []
    titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "adamw.toml", job, *cuda(tools), "--reference-kernels", "--save-temps", scratch)
    if "cubin" not in {image["kind"] for image in json.loads(titan_job.run([job, "info", "--json"]))["target"]["images"]}:
        print("skip the changed kernels: no assembler, so the job has no cubin")
        return []
    sound = (scratch / "dynamo-train.sm_80.ptx").read_text()
    table = titan_job.run([tools / "titan-compile", folder / "dynamo-train.onnx", "--recipe", folder / "adamw.toml", *cuda(tools), "--emit=codegen"])
    kernels = dict(re.findall(r"^kernel (titan_kernel_\d+) : (.*)$", table, re.MULTILINE))
    for wanted, instruction, other in ((r"gemm .* : 2, 3$", r"fma\.rn\.f32 (.*), (\S+);", r"mul.rn.f32 \1;"), (r"column .* : 3, 2", r"add\.rn\.f32", "sub.rn.f32"),
                                       (r"flat .* : 2\.weight$", r"sub\.rn\.f32", "add.rn.f32")):
        kernel = next(name for name, label in kernels.items() if re.match(wanted, label))
        begin, end = entry_point(sound, kernel)
        ptx.write_text(sound[:begin] + re.sub(instruction, other, sound[begin:end]) + sound[end:])
        # Other checks run beside this one: the environment of all of them stays as it is.
        environment = os.environ | {"TITAN_FAKE_CUDA_CAPABILITY": "8.0", "TITAN_FAKE_CUDA_PTX": str(ptx)}
        done = subprocess.run([job, "compare", "--gemm=generated", "--data", folder / "data.npz"], capture_output=True, text=True, env=environment)
        if done.returncode != 4 or not done.stderr.startswith(f"error: '{kernels[kernel]}' (command "):
            wrong.append(f"{kernels[kernel]}: exit {done.returncode}: {done.stderr}{done.stdout}")
    return wrong


def masks(tools, scratch):
    """Random numbers are the CPU's: the loss is a mean over what is drawn, and nothing else."""
    (scratch / "train.toml").write_text(check_random.recipe())
    np.savez(scratch / "data.npz", x=np.ones((96, 64), np.float32))
    wrong = []
    for model in sorted((TRAINING / "random").glob("*.onnx")):
        rows = {}
        for target in ("cpu", "cuda"):
            job = scratch / f"{model.stem}-{target}"
            titan_job.compile_job(tools, model, scratch / "train.toml", job, *options_for(tools, target))
            rows[target] = [row["loss"] for row in titan_job.train(job, f"{job}.run", scratch / "data.npz", 12)]
        # One element more or less is 1 / 512 of the loss.
        wrong += [f"{model.stem}: {line}" for line in relative(rows["cuda"], rows["cpu"])]
    return wrong


def code(tools, model, recipe, scratch):
    """Each entry point is one of the plan's, and keeps nothing of a thread in memory on any of the cards."""
    job = scratch / "coded"
    if len(cuda(tools)) == 1:
        return []  # kernels that are wrong say that there is no assembler
    titan_job.compile_job(tools, model, recipe, job, "--target=cuda", f"--arch={','.join(CARDS)}", "--save-temps", scratch / "temps")
    planned = json.loads(titan_job.run([job, "plan", "--json"]))["entries"]
    emitted = len(re.findall(r"^\.visible \.entry", next((scratch / "temps").glob("*.ptx")).read_text(), re.MULTILINE))
    wrong = [] if emitted == planned else [f"{emitted} entry points, and the plan has {planned}"]
    for card in CARDS:
        log = next((scratch / "temps").glob(f"*.{card}.log")).read_text()
        used = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
        wrong += [f"{card}: {len(used)} of {planned} entry points in the log"] if len(used) != planned else []
        spilled = [one for one in used if one != ("0", "0", "0")]
        wrong += [f"{card}: stack and spills of {spilled}"] if spilled else []
    return wrong


def reference_code(tools, name, scratch):
    folder = check_losses.REFERENCES / name
    export, recipe = next(check_losses.pairs(json.loads((folder / "reference.json").read_text())))
    return code(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", scratch)


def module(tools, name, scratch):
    """Three losses beside the CPU's, and the code."""
    folder, found = MODULES / name, {}
    export = sorted(json.loads((folder / "source.json").read_text())["exports"])[-1]
    model, recipe = folder / f"{export}.onnx", folder / "train.toml"
    for target in ("cpu", "cuda"):
        job = scratch / target
        titan_job.compile_job(tools, model, recipe, job, *options_for(tools, target))
        found[target] = [row["loss"] for row in titan_job.train(job, scratch / f"{target}.run", folder / "data.npz", 3)]
    return relative(found["cuda"], found["cpu"]) + code(tools, model, recipe, scratch)


def fusion(tools, name, compute, scratch):
    """Fused kernels have the bits of single ones."""
    folder, found = check_losses.REFERENCES / name, []
    export, recipe = next(check_losses.pairs(json.loads((folder / "reference.json").read_text())))
    for number, options in enumerate(((), UNFUSED)):
        job, out = scratch / f"job-{number}", scratch / f"run-{number}"
        titan_job.compile_job(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", job, *cuda(tools), "--set", f"precision.compute={compute}", *options)
        rows = titan_job.train(job, out, folder / "data.npz", 4, 2, "--gemm=generated")
        launches = json.loads(titan_job.run([job, "plan", "--json"]))["functions"]["step"]["launches"]
        found.append((launches, [row["loss"] for row in rows], state(out, 4)))
    wrong = [f"{found[0][0]} launches, and {found[1][0]} without fusion"] if found[0][0] >= found[1][0] else []
    return wrong + ["other losses or state than without fusion"] * (found[0][1:] != found[1][1:])


def state(out, step):
    folder = out / "checkpoints" / f"step-{step:08d}"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*.safetensors"))}


def interrupted(job, out, data, draw, number, steps):
    """Whether a run was stopped by the signal before its end."""
    metrics = out / "metrics.jsonl"
    before = metrics.read_bytes().count(b"\n") if metrics.exists() else 0
    target = before + draw.randint(3, steps // 5)
    process = subprocess.Popen([job, "train", "--out", out, "--data", data], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= target:
            process.send_signal(number)
            break
        time.sleep(0.001)
    said = process.communicate()[1].strip()
    if number == signal.SIGTERM and process.returncode != 0:
        raise titan_job.Failure(f"exit {process.returncode} after SIGTERM: {said}")
    return len(titan_job.losses_of(out)) < steps


def resume(tools, draw, scratch):
    """Killed, or stopped, three times at random: the bits of a run that was left alone."""
    folder, steps, wrong = check_losses.REFERENCES / "relu", 400, []
    job, alone, data = scratch / "job", scratch / "alone", folder / "data.npz"
    titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "cosine-clip.toml", job, *cuda(tools), "--set", f"train.steps={steps}", "--set", "checkpoint.every=7")
    expected = [row["loss"] for row in titan_job.train(job, alone, data, steps)]
    for number in (signal.SIGKILL, signal.SIGTERM):
        out = scratch / number.name
        stopped = sum(interrupted(job, out, data, draw, number, steps) for _ in range(3))
        titan_job.train(job, out, data, steps)
        if stopped < 3:
            wrong.append(f"{number.name}: only {stopped} of 3 runs were stopped before their end: raise the steps")
        if titan_job.losses_of(out) != expected:
            wrong.append(f"{number.name}: other losses than those of the run that was left alone")
        if state(out, steps) != state(alone, steps):
            wrong.append(f"{number.name}: another state than that of the run that was left alone")
    return wrong


def narrow(tools, name, scratch):
    """Products of bf16: the CPU's losses, but for roundings of sums in another order."""
    folder, found = check_losses.REFERENCES / name, {}
    for target in ("cpu", "cuda"):
        job = scratch / target
        titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "adamw.toml", job, *options_for(tools, target), "--set", "precision.compute=bf16")
        found[target] = [row["loss"] for row in titan_job.train(job, scratch / f"{target}.run", folder / "data.npz", 20)]
    return relative(found["cuda"], found["cpu"], NARROW)


def products(tools, name, scratch):
    """By the library, by the job's own kernels, and continued by the algorithms that the run began with."""
    folder, wrong = check_losses.REFERENCES / name, []
    recorded = json.loads((folder / "reference.json").read_text())
    export, recipe = next(check_losses.pairs(recorded))
    for compute, most in (("f32", LOSSES), ("bf16", NARROW)):
        job, data = scratch / compute, folder / "data.npz"
        titan_job.compile_job(tools, folder / f"{export}.onnx", folder / f"{recipe}.toml", job, *cuda(tools), "--set", f"precision.compute={compute}")

        def train(out, steps, *options, before=()):
            out = scratch / f"{compute}-{out}"
            titan_job.run([*before, job, "train", "--out", out, "--data", data, "--steps", steps, "--threads", 2, *options])
            return titan_job.losses_of(out), state(out, steps)

        library, own = train("library", 20), train("own", 20, "--gemm=generated")
        if compute == "f32":
            wrong += [f"own kernels: {line}" for line in relative(own[0], recorded["recipes"][recipe]["f32"])]
        wrong += [f"{compute}: {line}" for line in relative(library[0], own[0], most)]
        # Of another algorithm than the one that is chosen now.
        other = ("env", "TITAN_FAKE_CUBLASLT_REFUSE=0")
        whole = train("whole", 20, before=other)
        train("parts", 10, before=other)
        if train("parts", 20) != whole:
            wrong.append(f"{compute}: a resumed run has other bits")
        if whole in (library, own):
            wrong.append(f"{compute}: two algorithms give the same bits, so the resumed run shows nothing")
    return wrong


def devices(tools, scratch):
    """One run on a CPU, a card, a CPU and a card: the losses of the CPU alone."""
    folder = check_losses.REFERENCES / "relu"
    jobs, data, out = {}, folder / "data.npz", scratch / "run"
    for target in ("cpu", "cuda"):
        jobs[target] = scratch / target
        titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "cosine-clip.toml", jobs[target], *options_for(tools, target))
    expected = [row["loss"] for row in titan_job.train(jobs["cpu"], scratch / "alone", data, 20)]
    for steps, target in ((5, "cpu"), (10, "cuda"), (15, "cpu"), (20, "cuda")):
        titan_job.train(jobs[target], out, data, steps)
    return relative(titan_job.losses_of(out), expected)


def learning_rates(tools, scratch):
    """A schedule, and from step 7 on another rate: the losses of the CPU's job. A rate that were part of the graph would not change."""
    folder, found = check_losses.REFERENCES / "relu", {}
    for target in ("cpu", "cuda"):
        job = scratch / target
        titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "cosine-clip.toml", job, *options_for(tools, target))
        for out, settings in (("changed", ("--set", "optimizer.lr=0.02")), ("kept", ())):
            titan_job.train(job, scratch / f"{target}-{out}", folder / "data.npz", 7)
            found[target, out] = [row["loss"] for row in titan_job.train(job, scratch / f"{target}-{out}", folder / "data.npz", 20, 2, *settings)]
    wrong = [line for out in ("changed", "kept") for line in relative(found["cuda", out], found["cpu", out])]
    return wrong + ["the rate changes no loss"] * (not relative(found["cuda", "changed"], found["cuda", "kept"]))


def averages(tools, scratch):
    """Averages of the CPU's run, of intervals too, where two of five batches are skipped: with a save of every step, and with steps that are begun
    before the one before them has said whether it was an update."""
    folder, wrong, states = check_losses.REFERENCES / "relu", [], {}
    arrays = dict(np.load(folder / "data.npz"))
    arrays["targets"][8:16] = arrays["targets"][24:32] = -100
    np.savez(scratch / "gaps.npz", **arrays)
    profiles = "ema.profiles={ each = 0.9, third = { decay = 0.8, every = 3 }, fifth = { decay = 0.6, every = 5, warmup = true } }"
    for name, target, options in (("cpu", "cpu", ()), ("saved", "cuda", ("--set", "checkpoint.every=1")), ("ahead", "cuda", ())):
        job = scratch / name
        titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "cosine-clip.toml", job, *options_for(tools, target), "--set", profiles)
        titan_job.train(job, scratch / f"{name}.run", scratch / "gaps.npz", 20, 2, *options)
        kept = scratch / f"{name}.run" / "checkpoints" / "step-00000020"
        states[name] = {part: titan_job.read_safetensors(kept / part) for part in ("model", "ema-each", "ema-third", "ema-fifth")}
    for name in ("saved", "ahead"):
        for part, tensors in states[name].items():
            worst = max(np.abs(tensor - states["cpu"][part][key]).max() / np.abs(tensor).max() for key, tensor in tensors.items())
            wrong += [f"{name}: {part} differs from the CPU's by {worst:.1e}"] if not worst <= AVERAGES else []
    return wrong


def averages_on_host(tools, scratch):
    """Averages in the host's memory have the bits of those on the card, resumed too; the card has as much more room."""
    folder, data, wrong, jobs = check_losses.REFERENCES / "relu", check_losses.REFERENCES / "relu" / "data.npz", [], {}
    for place in ("device", "host"):
        jobs[place] = scratch / place
        settings = ("ema.profiles={ each = 0.9, third = { decay = 0.8, every = 3 } }", f"ema.device={place}")
        titan_job.compile_job(tools, folder / "dynamo-train.onnx", folder / "cosine-clip.toml", jobs[place], *cuda(tools), *(word for setting in settings for word in ("--set", setting)))
    titan_job.train(jobs["device"], scratch / "card", data, 20)
    for steps, place, setting in ((7, "host", "checkpoint.staging=none"), (13, "device", "checkpoint.every=2"), (20, "host", "checkpoint.every=3")):
        titan_job.train(jobs[place], scratch / "turns", data, steps, 2, "--set", setting, "--set", f"data.eval={data}", "--set", "train.eval_every=3", "--set", "train.eval_ema=[\"each\"]")
    if state(scratch / "turns", 20) != state(scratch / "card", 20):
        wrong.append("a run of both has another state than one on the card alone")
    evaluated = {json.loads(titan_job.run([jobs[place], "eval", "--out", scratch / "card", "--data", data, "--ema", "each", "--json"]))["loss"] for place in jobs}
    wrong += [f"evaluations differ: {evaluated}"] if len(evaluated) != 1 else []
    memory = {place: json.loads(titan_job.run([jobs[place], "plan", "--json"]))["memory"] for place in jobs}
    moved = memory["device"]["device"] - memory["host"]["device"]
    if not memory["device"]["state"]["ema"] <= moved == memory["host"]["pinned"] - memory["device"]["pinned"]:
        wrong.append(f"the plans' memory: {memory}")
    # By `env`: other checks run in this process at the same time.
    room = f"TITAN_FAKE_CUDA_MEMORY={memory['host']['device'] + memory['host']['driver'] + 512}"
    begin = {place: ["env", room, jobs[place], "train", "--out", scratch / f"narrow-{place}", "--data", data, "--steps", 1] for place in jobs}
    titan_job.run(begin["host"])
    try:
        titan_job.run(begin["device"])
        wrong.append("averages on the card fit where there is no room for them")
    except titan_job.Failure as failure:
        wrong += [] if "the job needs" in str(failure) else [str(failure)]
    return wrong


def one_file(tools, scratch):
    """One job for both: its run goes from device to device by --device, and its losses are those of the jobs for one, bit for bit."""
    folder, both, wrong = check_losses.REFERENCES / "relu", scratch / "both", []
    model, recipe, data = folder / "dynamo-train.onnx", folder / "cosine-clip.toml", folder / "data.npz"
    titan_job.compile_job(tools, model, recipe, both, "--target=cpu,cuda")
    for target in ("cpu", "cuda"):
        alone, rows = scratch / target, {}
        titan_job.compile_job(tools, model, recipe, alone, *options_for(tools, target))
        for job in (alone, both):
            titan_job.train(job, scratch / f"{job.name}-{target}", data, 20, 2, f"--device={target}")
            rows[job] = (titan_job.losses_of(scratch / f"{job.name}-{target}"), state(scratch / f"{job.name}-{target}", 20))
        if rows[alone] != rows[both]:
            wrong.append(f"{target}: other losses or state than those of the job for it alone")
    out = scratch / "run"
    for steps, device in ((5, "cuda"), (10, "cpu"), (15, "auto"), (20, "cpu")):  # auto: there is a card
        titan_job.train(both, out, data, steps, 2, f"--device={device}")
    return wrong + relative(titan_job.losses_of(out), titan_job.losses_of(scratch / "both-cpu"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", required=True, type=Path, help="folder of titan-compile")
    parser.add_argument("--driver", required=True, type=Path, help="folder of the tests' libcuda.so.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="checks whose name starts so")
    parser.add_argument("--jobs", type=int, default=2, help="checks at once")
    arguments = parser.parse_args()
    print(f"--seed {arguments.seed}")
    checks = dict(loss_checks(arguments.tools))
    checks |= {f"reference kernels of {name}": (reference, arguments.tools, name) for name in MODELS}
    checks |= {f"compare {name}": (compare, arguments.tools, name) for name in MODELS}
    checks["kernels that are wrong"] = (broken, arguments.tools)
    checks |= {f"module {name}": (module, arguments.tools, name) for name in FAMILIES}
    checks |= {f"code of {name}": (reference_code, arguments.tools, name) for name in MODELS}
    checks |= {f"fusion of {name} in {compute}": (fusion, arguments.tools, name, compute) for name in FUSED_MODELS for compute in ("f32", "bf16")}
    checks["random numbers"] = (masks, arguments.tools)
    checks |= {f"bf16 beside the CPU of {name}": (narrow, arguments.tools, name) for name in EVERY_RECIPE}
    checks |= {f"products of {name}": (products, arguments.tools, name) for name in EVERY_RECIPE}
    checks["resume"] = (resume, arguments.tools, random.Random(arguments.seed))
    checks["cpu, cuda, cpu, cuda"] = (devices, arguments.tools)
    checks["learning rates"] = (learning_rates, arguments.tools)
    checks["averages"] = (averages, arguments.tools)
    checks["averages in the host's memory"] = (averages_on_host, arguments.tools)
    checks["one file for both"] = (one_file, arguments.tools)
    checks = {name: check for name, check in checks.items() if name.startswith(arguments.only)}

    def run(name):
        with tempfile.TemporaryDirectory() as scratch:
            return failed(name, *checks[name], Path(scratch))

    with mock.patch.dict(os.environ, LD_LIBRARY_PATH=str(arguments.driver.resolve())), concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        wrong = sum(pool.map(run, checks))
    return 1 if wrong or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
