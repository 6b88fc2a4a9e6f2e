"""The outcome of a stage: its checks, written to a file behind each, so that a stage whose time is over leaves what it did.

A check is a function that returns facts (anything JSON has), or raises Failed or Skipped with the reason. What facts have under "text", lines
for a person, is printed and stands in the summary.
"""
import concurrent.futures
import json
import os
import threading
import time
import traceback
from pathlib import Path


class Failed(Exception):
    """What was to be is not; the message is for a person. `facts` are kept beside it."""

    def __init__(self, reason, facts=None):
        super().__init__(reason)
        self.facts = facts


class Skipped(Exception):
    """What the machine or the pack lacks."""


def replace(path, text):
    """Writes a file as a whole, or not at all."""
    path = Path(path)
    beside = path.with_name(path.name + ".new")
    beside.write_text(text)
    os.replace(beside, path)


class Report:
    def __init__(self, path):
        self.path, self.checks, self.lock = Path(path), [], threading.Lock()
        self.write()

    def write(self):
        replace(self.path, json.dumps({"checks": self.checks}, indent=1))

    def check(self, name, function, *arguments):
        """Whether it is as it is to be."""
        entry = outcome(name, function, *arguments)
        with self.lock:
            self.checks.append(entry)
            self.write()
            print(f"  {entry['status']:7} {name}" + (f": {entry['reason']}" if "reason" in entry else ""), flush=True)
            for line in text_of(entry):
                print(f"          {line}", flush=True)
        return entry["status"] == "ok"

    def check_all(self, checks, at_once):
        """(name, function, arguments...) each; some at the same time."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            return all(pool.map(lambda check: self.check(*check), checks))


def outcome(name, function, *arguments):
    started = time.monotonic()
    try:
        entry = {"status": "ok", "facts": function(*arguments)}
    except Skipped as reason:
        entry = {"status": "skipped", "reason": str(reason)}
    except Failed as failure:
        entry = {"status": "failed", "reason": str(failure), "facts": failure.facts}
    except Exception as error:  # the other checks go on
        entry = {"status": "failed", "reason": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    return {"name": name, **entry, "seconds": round(time.monotonic() - started, 2)}


def text_of(check):
    facts = check.get("facts")
    return facts.get("text", "").splitlines() if isinstance(facts, dict) else []


def verdict(checks):
    """"ok, 7 checks"; "failed: 2 of 7 checks, the first 'losses of relu'"."""
    names = {status: [check["name"] for check in checks if check["status"] == status] for status in ("failed", "skipped")}
    if names["failed"]:
        return f"failed: {len(names['failed'])} of {len(checks)} checks, the first '{names['failed'][0]}'"
    if len(names["skipped"]) == len(checks):
        return f"skipped: {checks[0]['reason']}"
    skipped = f", {len(names['skipped'])} skipped" if names["skipped"] else ""
    return f"ok, {len(checks)} checks{skipped}"


def counts(stages):
    """Of the checks, by status, and of the stages that did not end by themselves."""
    found = [check["status"] for stage in stages.values() for check in stage["checks"]]
    return {"stages": len(stages), "checks": len(found), **{status: found.count(status) for status in ("ok", "failed", "skipped")},
            "late": sum(stage["status"] == "late" for stage in stages.values()), "not_run": sum(stage["status"] == "not run" for stage in stages.values()),
            "broken": sum(stage["status"] == "failed" and all(check["status"] != "failed" for check in stage["checks"]) for stage in stages.values())}


def summary_text(stages):
    """A line a stage, what its checks say below it, and the counts as the last line."""
    lines = []
    for name, stage in stages.items():
        lines.append(f"{name}: {stage['summary']}" + (f" ({stage['seconds']:.0f} s)" if "seconds" in stage else ""))
        for check in stage["checks"]:
            if check["status"] != "ok":
                lines.append(f"  {check['status']} {check['name']}: {check['reason']}")
            elif text_of(check):
                lines.append(f"  {check['name']}")
            lines += [f"    {line}" for line in text_of(check)]
    count = counts(stages)
    lines.append(f"{count['stages']} stages: {count['checks']} checks, {count['ok']} ok, {count['failed']} failed, {count['skipped']} skipped; "
                 f"{count['late']} stages late, {count['not_run']} not run, {count['broken']} broken")
    return "\n".join(lines) + "\n"
