"""Contenders in one run: each a process of its own, all warm before the first measurement, measured in turns, one at a time, so that what
disturbs the machine disturbs all. One that cannot go on is left out, with its reason; the others do."""
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
CONTENDERS = HERE / "contenders"
sys.path.insert(0, str(CONTENDERS))
REST = 0.3  # seconds until the spinning threads of the one before have gone to sleep
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
PATIENCE = 900  # seconds for a contender's set-up, and for a round


class Failure(Exception):
    """A contender cannot go on; the message is its reason."""


class Contender:
    """`facts`: what it said when it was ready; `times`: seconds a step, one for each round; `last`: its last answer."""

    def __init__(self, name, command):
        self.name, self.times, self.last = name, [], {}
        self.said = tempfile.TemporaryFile("w+")
        # A compiler's cache of its own: no contender's first step finds what another one, or an earlier run, compiled.
        self.caches = tempfile.TemporaryDirectory(prefix="titan-bench-cache-")
        environment = dict(os.environ, PYTHONPATH=str(CONTENDERS), **{name: f"{self.caches.name}/{name}" for name in CACHES})
        self.process = subprocess.Popen([sys.executable, CONTENDERS / command[0], *map(str, command[1:])], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)
        self.facts = self.hear("ready ")

    def hear(self, start):
        """The JSON behind `start` of the next line that begins so; other lines are chatter."""
        patience = threading.Timer(PATIENCE, self.process.kill)
        patience.start()
        try:
            for line in self.process.stdout:
                if line.startswith(start):
                    return json.loads(line[len(start):])
        finally:
            expired = not patience.is_alive()
            patience.cancel()
        code = self.process.wait()
        self.said.seek(0)
        if expired:
            raise Failure(f"nothing within {PATIENCE} s")
        if code < 0:
            raise Failure(f"killed by signal {-code}" + (": out of memory?" if code == -9 else ""))
        raise Failure((self.said.read().strip().splitlines() or [f"exit {code}"])[-1])

    def measure(self, steps):
        try:
            self.process.stdin.write(f"{steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it died since: hear() says of what
        self.last = self.hear("answer ")
        self.times.append(self.last["seconds"] / steps)

    def result(self):
        """What is recorded of it: seconds are those of a step."""
        more = {key: value for key, value in self.last.items() if key != "seconds"}
        return {"name": self.name, **self.facts, "seconds": self.times, "median": statistics.median(self.times), **more}

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.caches.cleanup()


def compare(commands, arguments, steps):
    """Starts and measures `commands`, {name: [script, argument...]}. Returns the results, and {name: why it has none}."""
    chosen = [word.strip().lower() for word in arguments.only.split(",") if word.strip()]
    contenders, failures = [], {}
    for name, command in commands.items():
        if chosen and not any(word in name.lower() for word in chosen):
            continue
        print(f"bench: starting {name}", file=sys.stderr, flush=True)
        try:
            contenders.append(Contender(name, command))
        except Failure as failure:
            failures[name] = str(failure)
    for _ in range(arguments.rounds):
        for contender in [c for c in contenders if c.name not in failures]:
            time.sleep(REST)
            try:
                contender.measure(steps)
            except Failure as failure:
                failures[contender.name] = str(failure)
    done = [c for c in contenders if c.name not in failures]
    for contender in done:
        contender.close()
    return [contender.result() for contender in done], failures


def prepare(script, folder, *arguments):
    """Lets contenders/`script` write to `folder` what all of a row start from; returns why that failed, or nothing."""
    done = subprocess.run([sys.executable, CONTENDERS / script, folder, *map(str, arguments)], env=dict(os.environ, PYTHONPATH=str(CONTENDERS)),
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def split_by_losses(results, tolerance):
    """The results whose first losses are within `tolerance` (relative) of the first one's, and {name: why not} of the others: their times do
    not count."""
    right, wrong = [], {}
    for result in results:
        expected = results[0]["losses"]
        if len(expected) == len(result["losses"]) and all(abs(a - b) <= tolerance * abs(b) for a, b in zip(result["losses"], expected)):
            right.append(result)
        else:
            wrong[result["name"]] = f"losses {result['losses']} are not {results[0]['name']}'s {expected}"
    return right, wrong


def best_peer(results):
    """Seconds of a step, or None."""
    return min((result["median"] for result in results if not result["name"].startswith("Titan")), default=None)


def of_other_build(name):
    """What a contender `name` is called where it is of the build of `--against`."""
    return f"{name} of --against"


def ratios(results, name, base):
    """The times of contender `name` as parts of those of `base`, round by round; nothing where one of them has none."""
    times = {result["name"]: result["seconds"] for result in results}
    return [time / other for time, other in zip(times[name], times[base])] if {name, base} <= set(times) else []


def against_other_build(results):
    """A line for each contender that is there of `--against`, too."""
    lines = []
    for name in [result["name"] for result in results]:
        parts = ratios(results, name, of_other_build(name))
        if parts:
            other = of_other_build(name)
            build = "this build" if name == "Titan" else f"{name} of this build"
            lines.append(f"{build} / {other}: median {statistics.median(parts):.3f}, {min(parts):.3f} to {max(parts):.3f}\n")
    return "".join(lines)


def milliseconds(digits):
    """Columns of times, to so many digits."""
    return {"ms a step, median": lambda r: f"{r['median'] * 1e3:.{digits}f}",
            "lowest": lambda r: f"{min(r['seconds']) * 1e3:.{digits}f}",
            "highest": lambda r: f"{max(r['seconds']) * 1e3:.{digits}f}"}


def memory(unit, size, digits):
    """Columns of what it took: Titan compiles in a process of its own, the others where they train."""
    def compiler(result):
        peak = result.get("compile_peak_bytes")
        return f"{peak / size:.{digits}f} {unit}" if peak else "the same"

    return {"peak memory": lambda r: f"{r['peak_bytes'] / size:.{digits}f} {unit}", "of the compiler": compiler,
            "first step, compilation included": lambda r: f"{r['first_step']:.1f} s"}


def table(results, failures, columns):
    """Markdown: a row for each contender, one cell for each of `columns`, {heading: function of a result}; the reason where there is no result."""
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    for result in results:
        cells = [f"{result['name']} {result['version']}", *(cell(result) for cell in columns.values())]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [f"| {name} | not measured: {reason.replace('|', '/')} |" + " |" * (len(columns) - 1) for name, reason in failures.items()]
    return lines


def processor():
    """Its name for people, and for a file name."""
    lines = subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name, family, model = (fields.get(key, "?") for key in ("Model name", "CPU family", "Model"))
    plain = re.sub(r"\((r|tm)\)|\bprocessor\b", "", name.lower()).split()
    return f"{name} (family {family}, model {model})", "-".join([*plain, family, model])


def save(benchmark, text, ending=""):
    """Writes results/DATE-CPU[ENDING].md, and returns its path."""
    path = HERE / "results" / f"{datetime.date.today()}-{processor()[1]}{ending}.md"
    path.write_text(f"Made by `bench/run {benchmark} --save`.\n\n{text}")
    print(f"bench: wrote {path}", file=sys.stderr)
    return path


def add_options(parser, rounds, steps):
    """Those of all benchmarks."""
    parser.add_argument("--tools", type=Path, default=HERE.parent / "build/release/bin", help="folder of titan-compile and titan-run")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--steps", type=int, default=steps, help="steps of a round")
    parser.add_argument("--quick", action="store_true", help="a look of some minutes: two rounds of what takes least time")
    parser.add_argument("--save", action="store_true", help="also write results/ (results/README.md)")


def add_contenders(parser):
    """Those of benchmarks beside peers."""
    parser.add_argument("--against", type=Path, help="the tools of another build, measured in turns with it")
    parser.add_argument("--only", default="", help="contenders whose name contains one of these, comma-separated")


def add_rows(parser, rows, precisions=()):
    """Which of `rows`, and which of `precisions` where there are some."""
    parser.add_argument("--rows", default=",".join(rows), help=f"of {', '.join(rows)} (default: all)")
    if precisions:
        parser.add_argument("--precision", default=",".join(precisions), help=f"of {', '.join(precisions)} (default: all)")


def add_alone(parser):
    parser.add_argument("--alone", action="store_true", help="Titan by itself, on models that it knows by name: without PyTorch")


def chosen(parser, words, known):
    """The comma-separated `words`, each of which is `known`."""
    for word in words.split(","):
        if word not in known:
            parser.error(f"'{word}' is none of {', '.join(known)}")
    return words.split(",")


def parse_options(parser, **quick):
    """The arguments; `quick` says what --quick puts in the place of defaults."""
    arguments = parser.parse_args()
    if getattr(arguments, "alone", False) and arguments.save:
        parser.error("--save keeps runs beside peers")
    if arguments.quick:
        for key, value in ({"rounds": 2} | quick).items():
            if getattr(arguments, key) == parser.get_default(key):
                setattr(arguments, key, value)
    if arguments.save and arguments.rounds < 5:
        parser.error("--rounds must be at least 5 to be saved")
    return arguments
