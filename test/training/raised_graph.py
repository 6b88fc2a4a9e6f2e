"""What `titan-compile --emit=import` prints, as a graph that can be compared: the order of ops, their names and paths do not count."""
import re

OP = re.compile(r"^\s*(?:((?:%[\w]+(?::\d+)?(?:, )?)+) = )?([\w.]+)(.*)$")
VALUE = re.compile(r"%\w+")


def canonical(text):
    """The function's ops from its results back, each printed with operands numbered in the order of their first use. Module paths, streams of
    random numbers and the digits of constants go."""
    header = next(line for line in text.splitlines() if "func.func @model" in line)
    number = {value: f"@{state or name}" for value, state, name in
              re.findall(r'(%arg\d+): [^{]*\{(?:titan\.state = @"?([^",}]*)"?|titan\.input = "(\w+)")', header)}
    ops, defined = [], {}
    for line in text[text.index(header) + len(header):].splitlines():
        match = OP.match(line)
        if not match or not (match[1] or match[2] == "return"):
            continue
        results = VALUE.findall(match[1] or "")
        ops.append((results, match[2], match[3]))
        for result in results:
            defined[result] = len(ops) - 1
    lines, done, results_of = [], set(), {}

    def shown(value):
        return results_of.get(value) or number[value]

    def show(index):
        if index in done:
            return
        done.add(index)
        results, name, rest = ops[index]
        for operand in VALUE.findall(rest):
            if operand in defined:
                show(defined[operand])
        rest = re.sub(r',? ?path = \[[^\]]*\],? ?', "", rest)
        rest = re.sub(r",? ?stream = -?\d+ : i64", "", rest)
        rest = re.sub(r"stream -?\d+", "", rest).replace("{}", "")
        if name in ("titan.constant", "titan.attention"):
            # The last digits of folded tables and of scales are the exporter's.
            rest = re.sub(r"-?\d\.\d+(e[+-]\d+|E-?\d+)?|\d+\.\d+", lambda m: f"{float(m[0]):.5g}", rest)
        for result in results:
            results_of.setdefault(result, f"#{len(results_of)}")
        rest = VALUE.sub(lambda m: shown(m[0]), rest)
        lines.append(f"{', '.join(map(shown, results))} = {name} {' '.join(rest.split())}")

    show(next(i for i, (_, name, _) in enumerate(ops) if name == "return"))
    return lines


def first_difference(a, b):
    for i, (left, right) in enumerate(zip(a, b)):
        if left != right:
            return f"line {i}:\n    {left}\n    {right}"
    return f"{len(a)} against {len(b)} ops"
