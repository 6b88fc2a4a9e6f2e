"""Kernels on the card against the interpreter of PTX: recorded cases, as cubins and as the driver assembles their PTX; the device's own tests."""
import json

import stage

CASES = stage.PACK / stage.DESCRIPTION["cases"]
PROGRAM = stage.PACK / "bin" / "titan-card-kernels"
DIFFERENT = 4  # its exit code


def kernels(work, cases, *options):
    """(exit code, facts, last line)"""
    found = work / "found.json"
    found.unlink(missing_ok=True)
    code, output = stage.said([PROGRAM, cases, "--json", found, *options], limit=85)
    if not found.exists():
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}")
    facts = json.loads(found.read_text())
    facts["differences"] = facts["differences"][:200]
    return code, facts, stage.last_line(output)


def equal(work, *options):
    code, facts, last = kernels(work, CASES, *options)
    if code != 0:
        first = f"; the first: {facts['differences'][0]}" if facts["differences"] else ""
        raise stage.Failed(f"exit {code}: {last}{first}", facts)
    return facts


def as_text(work):
    if not stage.DESCRIPTION["cubins"]:
        raise stage.Skipped("the pack has PTX alone, which the check before ran")
    return equal(work, "--ptx", "--only", stage.DESCRIPTION["ptx_only"])


def spoilt(work):
    """One expected bit that is wrong is found, and named: the comparison sees what it is to see."""
    file = work / "spoilt.cases"
    code, output = stage.said([PROGRAM, CASES, "--spoil", file])
    if code != 0:
        raise stage.Failed(f"exit {code}: {stage.last_line(output)}")
    case, place = stage.last_line(output).split(": ", 1)
    code, facts, last = kernels(work, file, "--only", case)
    wrong = [line for line in facts["differences"] if line.startswith(f"{case}: {place}: ") and "; 1 of " in line]
    if code != DIFFERENT or len(wrong) != 1:
        raise stage.Failed(f"{case}: {place} is wrong, and was not found: exit {code}: {last}", facts)
    return wrong[0]


def device_tests(work, *filters):
    """Tests of the device that hold on any card. Each of `filters` has a process, since a fault ends the use of the card."""
    outcomes = []
    for number, chosen in enumerate(filters):
        found = work / f"tests-{number}.json"
        code, output = stage.said([stage.PACK / "bin" / "titan_device_cuda_test", f"--gtest_filter={chosen}", f"--gtest_output=json:{found}"], limit=40)
        if code != 0:
            wrong = [line for line in output.splitlines() if "Failure" in line or line.startswith("[  FAILED  ]")]
            raise stage.Failed(f"exit {code}: {(wrong or [stage.last_line(output)])[0]}", output[-4000:].splitlines())
        ran = json.loads(found.read_text())["tests"]
        if ran != len(chosen.split(":")):
            raise stage.Failed(f"{ran} of {len(chosen.split(':'))} tests are there: {chosen}")
        outcomes.append(ran)
    return {"tests": sum(outcomes)}


def main():
    report, work = stage.begin()
    report.check("kernels as packed", equal, work)
    report.check("kernels that the driver assembles", as_text, work)
    report.check("a wrong bit is found", spoilt, work)
    report.check("tests of the device", device_tests, work, ":".join(stage.DESCRIPTION["device_tests"]))
    report.check("faults", device_tests, work, *stage.DESCRIPTION["fault_tests"])


if __name__ == "__main__":
    main()
