"""Every export of every GPT of gpt_zoo.py: titan-compile imports it, and calls its parameters, buffers and ties what
PyTorch calls them.

    test/peers/run-with-peers test/peers/gpt_names.py --tools build/dev/bin [--exports DIR] [--models G] [--ways G] [--quick]

Without --exports the exports are made first (export_gpt.py). FOLDED lists what an exporter destroyed, and Titan therefore
cannot name; anything else is a failure.
"""
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

import export_gpt
import gpt_zoo

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from verdict import failed

UNFOLDED = {way for way, options in export_gpt.WAYS.items() if not options.get("fold") and not options.get("optimize")}
LINE = re.compile(r"^  (\S+) +(\w+) +(\[[\d, ]*\])(.*)$")
TIED = re.compile(r"tied to '([^']*)'")
PART_OF = re.compile(r"part of '([^']*)'")

# What PyTorch's optimizers take out of a file with a fixed sequence: (way, parameter of the source) -> what stands for it.
# torch.export says which parameter it was: the file has the part of it that the example reads, and the account says so (PART).
# TorchScript says nothing: the sum of a token embedding and an anonymous table is a parameter with a structural name.
PART = "part"
FOLDED = {
    ("dynamo-*optimized*", "*wpe.weight"): PART,
    ("dynamo-*optimized*", "positions"): PART,
    ("dynamo-*optimized*", "*embed_positions.weight"): PART,
    ("dynamo-*optimized*", "position_embedding_table.weight"): PART,
    ("legacy-*", "*wpe.weight"): "*add_0.weight",
    ("legacy-*", "positions"): "add_0.weight",
    ("legacy-*", "position_embedding_table.weight"): "add_0.weight",
}


def tables(text):
    """Section -> name -> (shape, aliases, the parameter that it is a part of) of what --check prints."""
    found, section = {}, None
    for line in text.splitlines():
        if heading := re.match(r"^(inputs|outputs|parameters|buffers|constants) \(", line):
            section = found.setdefault(heading[1], {})
        elif section is not None and (entry := LINE.match(line)):
            section[entry[1]] = (json.loads(entry[3]), TIED.findall(entry[4]), PART_OF.findall(entry[4]))
    return found


def folded(way, parameter):
    """The name that may stand for it, or PART, or None."""
    for (ways, names), instead in FOLDED.items():
        if fnmatch.fnmatch(way, ways) and fnmatch.fnmatch(parameter, names) and way not in UNFOLDED:
            return instead
    return None


def check(tools, path, model, way):
    expected = json.loads((path.parent / f"{model}.json").read_text())
    recipe = path.with_suffix(".toml")
    dims = f"dims = {{ seq = {gpt_zoo.POSITIONS} }}\n" if "seq" in export_gpt.WAYS[way]["dynamic"] else ""
    micro = export_gpt.RECORDED_BATCH
    recipe.write_text(f"[model]\n{dims}[batch]\nmicro = {micro}\nglobal = {micro}\n")
    result = subprocess.run([tools / "titan-compile", path, "--recipe", recipe, "--check"], capture_output=True, text=True, timeout=120)
    text = result.stdout + result.stderr
    wrong = [] if "the model can be imported" in text else [line for line in text.splitlines() if "error" in line][:1] or [text[-300:]]
    sections = tables(text)
    parameters = sections.get("parameters", {})
    ties = {name: set(group) for group in expected["tied"] for name in group}
    canonical, structural = {}, set()
    for name, (shape, aliases, _) in parameters.items():
        for known in [name, *aliases]:
            canonical[known] = shape
        if aliases and set([name, *aliases]) != ties.get(name):
            wrong.append(f"'{name}' is tied to {aliases}")
    for name, shape in expected["parameters"].items():
        if not set(ties.get(name, {name})) & set(canonical):
            instead = folded(way, name)
            parts = [part for part, (_, _, of) in parameters.items() if of == [name]]
            stand_ins = parts if instead == PART else fnmatch.filter(canonical, instead) if instead else []
            structural.update(stand_ins)
            if not stand_ins:
                wrong.append(f"'{name}' {shape} is missing")
        elif name in canonical and canonical[name] != shape:
            wrong.append(f"'{name}' is {canonical[name]} instead of {shape}")
    known = set(expected["parameters"]) | set(ties) | structural
    wrong += [f"'{name}' {shape} is no parameter of PyTorch" for name, (shape, _, _) in parameters.items() if name not in known]
    wrong += [f"buffer '{name}' is unknown to PyTorch" for name in sections.get("buffers", {}) if name not in expected["buffers"]]
    return wrong


def main():
    arguments = export_gpt.checking_parser(__doc__).parse_args()
    with export_gpt.exports(arguments) as exports:
        wrong = sum(failed(f"{model}-{way}", check, arguments.tools, path, model, way) for model, way, path in exports)
        print(f"{len(exports) - wrong} of {len(exports)} exports: imported, every name as PyTorch's")
    return 1 if wrong or not exports else 0


if __name__ == "__main__":
    sys.exit(main())
