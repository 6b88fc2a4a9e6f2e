"""MLP 784-128-10, batch 64, AdamW, f32, two threads: the time of one training step, Titan beside its peers.

All contenders are set up and warm before the first measurement; then rounds go through them in turn, one at a time,
so that what disturbs the machine disturbs all. The figure is the median over rounds of (seconds of STEPS steps / STEPS).
"""
import argparse
import datetime
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "contenders"))
import common

PEERS = {
    "PyTorch eager": ["pytorch.py"],
    "torch.compile": ["pytorch.py", "compile"],
    "JAX jit": ["jax_jit.py"],
    "ONNX Runtime Training": ["onnx_runtime.py"],
}


class Contender:
    def __init__(self, name, command):
        self.name, self.times, self.logged = name, [], []
        self.process = subprocess.Popen([sys.executable, HERE / "contenders" / command[0], *command[1:]],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.facts = json.loads(line[6:])
                return
        said = self.process.stderr.read().strip().splitlines()
        raise RuntimeError(said[-1] if said else f"exit {self.process.wait()}")

    def measure(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"{self.name} died: {self.process.stderr.read().strip()[-300:]}")
        self.times.append(float(answer[0]) / steps)
        self.logged += [float(value) for value in answer[1:]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(arguments):
    commands = {"Titan": ["titan.py", str(arguments.tools)]} | PEERS
    chosen = [word.strip().lower() for word in arguments.only.split(",") if word.strip()]
    contenders, skipped = [], []
    for name, command in commands.items():
        if chosen and not any(word in name.lower() for word in chosen):
            continue
        print(f"bench: starting {name}", file=sys.stderr, flush=True)
        try:
            contenders.append(Contender(name, command))
        except RuntimeError as error:
            skipped.append(f"{name}: {error}")
    return contenders, skipped


def processor():
    """Its name for people, and for a file name."""
    lines = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name, family, model = (fields.get(key, "?") for key in ("Model name", "CPU family", "Model"))
    return f"{name} (family {family}, model {model})", f"{name}-{family}-{model}".lower().replace(" ", "-")


def report(contenders, skipped, arguments):
    peers = [c for c in contenders if c.name != "Titan"]
    best = min((statistics.median(c.times) for c in peers), default=None)
    lines = [
        f"MLP {common.FEATURES}-{common.HIDDEN}-{common.CLASSES}, batch {common.BATCH}, AdamW, f32, {common.THREADS} threads; "
        f"{arguments.rounds} rounds of {arguments.steps} steps",
        f"{processor()[0]}, {datetime.date.today()}", "",
        "| | ms a step, median | lowest | highest | against the best peer | first step, compilation included |",
        "|---|---|---|---|---|---|"]
    for c in contenders:
        median = statistics.median(c.times)
        ratio = f"{median / best:.2f}" if best else ""
        lines.append(f"| {c.name} {c.facts['version']} | {median * 1e3:.3f} | {min(c.times) * 1e3:.3f} | {max(c.times) * 1e3:.3f} "
                     f"| {ratio} | {c.facts['first_step']:.1f} s |")
    for c in contenders:
        if c.logged:
            lines += ["", f"{c.name}'s own `seconds` in metrics.jsonl, median: {statistics.median(c.logged) * 1e3:.3f} ms"]
    lines += ["", *(f"skipped: {line}" for line in skipped)] if skipped else []
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tools", type=Path, default=HERE.parent / "build/release/bin", help="folder of titan-compile")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", default="", help="contenders whose name contains one of these, comma-separated")
    parser.add_argument("--save", action="store_true", help="also write results/<date>-<cpu>.md")
    arguments = parser.parse_args()
    if arguments.rounds < 5:
        parser.error("--rounds must be at least 5")

    contenders, skipped = start(arguments)
    for _ in range(arguments.rounds):
        for contender in contenders:
            time.sleep(0.3)  # until the spinning threads of the one before have gone to sleep
            contender.measure(arguments.steps)
    for contender in contenders:
        contender.close()
    text = report(contenders, skipped, arguments)
    print(text, end="")
    if arguments.save:
        path = HERE / "results" / f"{datetime.date.today()}-{processor()[1]}.md"
        path.write_text("Made by `bench/run --save`.\n\n" + text)
        print(f"bench: wrote {path}", file=sys.stderr)
    return 0 if contenders else 1


if __name__ == "__main__":
    sys.exit(main())
