"""Contenders in one run: each a process of its own, all warm before the first measurement, measured in turns, one at a time, so that what
disturbs the machine disturbs all."""
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
CONTENDERS = HERE / "contenders"
sys.path.insert(0, str(CONTENDERS))
REST = 0.3  # seconds until the spinning threads of the one before have gone to sleep


class Contender:
    """`times`: seconds a step, one for each round; `extra`: the further numbers of each answer."""

    def __init__(self, name, command):
        self.name, self.times, self.extra = name, [], []
        environment = dict(os.environ, PYTHONPATH=str(CONTENDERS))
        self.process = subprocess.Popen([sys.executable, CONTENDERS / command[0], *map(str, command[1:])], env=environment,
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
        self.extra.append([float(value) for value in answer[1:]])

    def median(self):
        return statistics.median(self.times)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def start(commands, only):
    """`commands`: {name: [script, argument...]}; `only`: parts of names, comma-separated. Returns contenders, and why others are missing."""
    chosen = [word.strip().lower() for word in only.split(",") if word.strip()]
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


def measure(contenders, rounds, steps):
    for _ in range(rounds):
        for contender in contenders:
            time.sleep(REST)
            contender.measure(steps)
    for contender in contenders:
        contender.close()


def processor():
    """Its name for people, and for a file name."""
    lines = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name, family, model = (fields.get(key, "?") for key in ("Model name", "CPU family", "Model"))
    return f"{name} (family {family}, model {model})", f"{name}-{family}-{model}".lower().replace(" ", "-")


def add_options(parser, rounds, steps):
    parser.add_argument("--tools", type=Path, default=HERE.parent / "build/release/bin", help="folder of titan-compile")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--steps", type=int, default=steps, help="steps of a round")
    parser.add_argument("--only", default="", help="contenders whose name contains one of these, comma-separated")
    parser.add_argument("--save", action="store_true", help="also write results/ (results/README.md)")
