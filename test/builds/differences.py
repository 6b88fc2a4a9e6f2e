"""What differs between two builds' outcomes of one case, by kind; and the exceptions that are allowed."""
import collections
import fnmatch
import struct
import tomllib
from dataclasses import dataclass

import titan_job
from outcome import ENVIRONMENT, assembly, generic, object_bytes, stage
from texts import kernels, ops

KINDS = {
    "compile": "the new build has no job: it refuses the case, or the job cannot say its plan; or neither build has one",
    "plan": "arena, temporaries, kernels, FLOP or bytes of plan --json",
    "schedule": "ops of --emit=schedule, their order and their result types",
    "assembly": "code of a kernel, or a kernel that one build lacks",
    "symbols": "the same kernels under other symbols",
    "run": "training fails under one build, or under both (but for what this machine lacks)",
    "losses": "a loss of a step, in any bit",
    "metrics": "another number of metrics.jsonl: gradient norm, learning rate, samples",
    "model": "a tensor of the checkpoint's model/, in any byte, its name, type or shape",
    "optimizer": "the same of optimizer/",
}


@dataclass(frozen=True)
class Difference:
    kind: str
    detail: str


@dataclass(frozen=True)
class Exemption:
    case: str  # a glob over the names of cases
    kind: str
    why: str

    def covers(self, case, difference):
        return self.kind == difference.kind and fnmatch.fnmatchcase(case, self.case)


def read_exemptions(path):
    """The [[allow]] tables of a TOML file; each needs `case`, `kind` and `why`, and nothing else."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise titan_job.Failure(f"{path}: {failure}") from None
    entries = []
    for number, table in enumerate(content.pop("allow", []), 1):
        where = f"{path}: [[allow]] {number}"
        if set(table) != {"case", "kind", "why"} or not all(isinstance(value, str) and value for value in table.values()):
            raise titan_job.Failure(f"{where} needs case, kind and why, each a text: it has {', '.join(table) or 'nothing'}")
        if table["kind"] not in KINDS:
            raise titan_job.Failure(f"{where}: no kind '{table['kind']}': use {', '.join(KINDS)}")
        entries.append(Exemption(**table))
    if content:
        raise titan_job.Failure(f"{path}: unknown {', '.join(content)}: only [[allow]] tables stand here")
    return entries


def bits(value):
    return struct.pack("<d", value) if isinstance(value, float) else value


def numbers_of_plan(plan):
    """{name: number} of what a plan promises about memory and work; a number that it does not have is None."""
    numbers = {"kernels": plan.get("kernels")}
    for key in ("arena", "temporaries"):
        numbers[f"memory.{key}"] = plan.get("memory", {}).get(key)
    for name, function in plan.get("functions", {}).items():
        for key in ("kernels", "flops", "bytes"):
            numbers[f"{name}.{key}"] = function.get(key)
    return numbers


def of_plan(old, new):
    before, after = numbers_of_plan(old.plan), numbers_of_plan(new.plan)
    if None in before.values():
        raise titan_job.Failure(f"the old build's plan --json has no {', '.join(key for key, value in before.items() if value is None)}")
    for key in sorted(before | after):
        if before.get(key) != after.get(key):
            yield Difference("plan", f"{key} {before.get(key)} -> {after.get(key)}")


def of_schedule(builds, old, new):
    paths = stage(old, "schedule"), stage(new, "schedule")
    if paths[0].read_bytes() == paths[1].read_bytes():
        return
    before, after = (ops(generic(build, path)) for build, path in zip(builds, paths))
    if not before:
        raise titan_job.Failure(f"no op was found in {paths[0]}")
    if before != after:
        at = next((i for i, (x, y) in enumerate(zip(before, after)) if x != y), min(len(before), len(after)))
        show = [listed[at] if at < len(listed) else "nothing" for listed in (before, after)]
        yield Difference("schedule", f"{len(before)} -> {len(after)} ops; op {at + 1}: {show[0]} -> {show[1]}")


def of_code(builds, old, new, case, options):
    objects = object_bytes(old), object_bytes(new)
    if objects[0] is not None and objects[0] == objects[1]:
        return  # what is assembled alike was printed alike
    before, after = (kernels(assembly(build, case, options)) for build in builds)
    if before == after:
        return
    if collections.Counter(before.values()) == collections.Counter(after.values()):
        moved = [symbol for symbol in before if after.get(symbol) != before[symbol]]
        yield Difference("symbols", f"{len(moved)} of {len(before)} kernels have another symbol: {', '.join(moved[:4])}")
        return
    for symbol in sorted(before.keys() | after.keys()):
        if symbol not in before or symbol not in after:
            yield Difference("assembly", f"{symbol} is in the {'old' if symbol in before else 'new'} build's code only")
        elif before[symbol] != after[symbol]:
            yield Difference("assembly", f"{symbol}: {first_other_line(before[symbol], after[symbol])}")


def first_other_line(before, after):
    lines = before.splitlines(), after.splitlines()
    at = next((i for i, (x, y) in enumerate(zip(*lines)) if x != y), min(map(len, lines)))
    show = [listed[at] if at < len(listed) else "the end" for listed in lines]
    return f"line {at + 1}: {show[0]} -> {show[1]}".replace("\t", " ")


def of_rows(run, before, after):
    if len(before) != len(after):
        yield Difference("losses", f"{run}: {len(before)} -> {len(after)} steps")
    for key in sorted({key for row in [*before, *after] for key in row}):
        for step, (x, y) in enumerate(zip(before, after), 1):
            if bits(x.get(key)) != bits(y.get(key)):
                yield Difference("losses" if key == "loss" else "metrics",
                                 f"{run}: {key} of step {step} {x.get(key)!r} -> {y.get(key)!r}")
                break


def of_tensors(run, part, before, after):
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield Difference(part, f"{run}: {name} is in the {'old' if name in before else 'new'} build's checkpoint only")
            continue
        x, y = before[name], after[name]
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            yield Difference(part, f"{run}: {name} {x.dtype}{list(x.shape)} -> {y.dtype}{list(y.shape)}")
        elif x.tobytes() != y.tobytes():
            raw = [tensor.reshape(-1).view(f"u{tensor.dtype.itemsize}") for tensor in (x, y)]
            other = raw[0] != raw[1]
            at = int(other.argmax())
            yield Difference(part, f"{run}: {name} has {int(other.sum())} other of {other.size} elements; element {at} "
                                   f"{x.reshape(-1)[at]!r} -> {y.reshape(-1)[at]!r}")


def of_runs(old, new):
    for name in old.runs:
        before, after = old.runs[name], new.runs[name]
        if (before.error, before.code) == (after.error, after.code) and before.code == ENVIRONMENT:
            continue  # the machine has no such run
        failures = [f"{side}: exit {run.code}, {run.error}" for side, run in (("old", before), ("new", after)) if run.error]
        if failures:
            yield Difference("run", f"{name}: {'; '.join(failures)}")
            continue
        yield from of_rows(name, before.rows, after.rows)
        for part in before.tensors:
            if not before.tensors[part] and part == "model":
                raise titan_job.Failure(f"{name}: the old build's checkpoint has no tensors")
            yield from of_tensors(name, part, before.tensors[part], after.tensors[part])


def compare(builds, case, options, old, new):
    """All differences between two outcomes of `case`. A case that only the new build compiles has none."""
    if new.error:
        return [Difference("compile", f"old: {old.error or 'compiles'}; new: {new.error}")]
    if old.error:
        return []
    return [*of_plan(old, new), *of_schedule(builds, old, new), *of_code(builds, old, new, case, options), *of_runs(old, new)]
