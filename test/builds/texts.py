"""Reads what titan-compile prints: the kernels' assembly by symbol, the ops of a module in order."""
import re

# `.LBB7_2` and `.LCPI7_0` count functions of the file: a kernel more before this one changes nothing in it.
LOCAL = re.compile(r"\.L(BB|CPI|JTI|func_end|tmp)(\d+)(_?)")
LABEL = re.compile(r"^([\w.$@]+):")
ENDS = re.compile(r"^\.Lfunc_end(\d+):")


def kernels(printed):
    """{symbol: code} of what --emit=codegen prints after the table. The code is instructions, local labels and the constants that it
    loads, without comments and without the number that LLVM gives the function."""
    lines = printed.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"\s+\.(text|file|section)\b", line)), len(lines))
    blocks, constants, symbol, pool = {}, {}, None, None
    for line in lines[start:]:
        line = line.split("#")[0].rstrip()
        label, end = LABEL.match(line), ENDS.match(line)
        if end:
            blocks[symbol].append(("end", end.group(1)))
            symbol = None
        elif label and label.group(1).startswith(".LCPI"):
            pool = constants.setdefault(label.group(1), [])
        elif label and not label.group(1).startswith(".L"):
            symbol, pool = label.group(1), None
            blocks[symbol] = []
        elif symbol is not None and line.strip():
            blocks[symbol].append(line.strip())
        elif pool is not None and re.match(r"\s+\.(long|quad|byte|short|zero|ascii)\b", line):
            pool.append(line.strip())
    return {symbol: code(lines, constants) for symbol, lines in blocks.items()}


def code(lines, constants):
    """One text of a function's lines and of the constants that they name."""
    ends = [line for line in lines if isinstance(line, tuple)]
    text = "\n".join(line for line in lines if isinstance(line, str))
    own = {name: value for name, value in constants.items() if ends and name.startswith(f".LCPI{ends[0][1]}_")}
    used = [f"{name}: {'; '.join(own[name])}" for name in sorted(own, key=lambda name: int(name.rsplit("_", 1)[1]))]
    return LOCAL.sub(r".L\1\3", text + "\n" + "\n".join(used))


OP = re.compile(r'^\s*(?:%[\w:, %#]+ = )?"([\w.]+)"\s*(?:<[^>]*>)?\(')


def ops(printed):
    """The ops of a module in MLIR's generic form, in order, as "name" where an op with regions starts and "name -> result types" where
    an op ends. Attributes and operands are left out."""
    found, opened = [], []
    for line in printed.splitlines():
        line = without_strings(line)
        starts = OP.match(line)
        closes = re.match(r"^\s*\}\)", line)
        if not starts and not closes:
            continue
        name = starts.group(1) if starts else opened.pop()
        if line.endswith("({"):
            opened.append(name)
            if starts:
                found.append(name)
        else:
            found.append(f"{name} -> {result_types(line)}")
    return found


def without_strings(line):
    """The line with the contents of its strings left out, except the op's name at its start."""
    starts = re.match(r'^\s*(?:%[^"]*= )?"[\w.]+"', line)
    head = starts.end() if starts else 0
    return line[:head] + re.sub(r'"(?:[^"\\]|\\.)*"', '""', line[head:])


def result_types(line):
    """What stands behind the last arrow of `: (operands) -> results`."""
    line = re.sub(r" loc\(.*\)$", "", line)
    at = line.rfind(") -> ")
    return line[at + 5:] if at >= 0 else ""
