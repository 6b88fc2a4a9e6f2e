"""One model, exported by PyTorch in all of its ways, gives one raised module: attention, norms, rotary embedding, activations and linear
layers as one op each, in one layout. Compared as a graph: the order of ops, their names and paths, and what docs/exports.md lists
as lost do not count.

    test/peers/run-with-peers test/peers/export_ways.py --tools build/dev/bin [--only NAME] [--keep DIR]
"""
import argparse
import copy
import logging
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from export_model import export
from raised_graph import canonical, first_difference
from gpt_spellings import MODELS, sample

WAYS = {
    "dynamo-18": dict(dynamo=True, training=True, dynamic=True, optimize=False, opset_version=18),
    "dynamo-20-optimized": dict(dynamo=True, training=False, dynamic=True, optimize=True, opset_version=20),
    "dynamo-23": dict(dynamo=True, training=True, dynamic=True, optimize=False, opset_version=23),
    "dynamo-23-optimized": dict(dynamo=True, training=False, dynamic=False, optimize=True, opset_version=23),
    "dynamo-24-static": dict(dynamo=True, training=False, dynamic=False, optimize=False, opset_version=24),
    "legacy-17-train": dict(dynamo=False, training=True, dynamic=True, opset_version=17),
    "legacy-17-eval": dict(dynamo=False, training=False, dynamic=False, opset_version=17),
    "legacy-14-eval": dict(dynamo=False, training=False, dynamic=True, opset_version=14),
}
OPTIMIZED = ("dynamo-20-optimized", "dynamo-23-optimized", "legacy-17-eval", "legacy-14-eval")
LEGACY = ("legacy-17-train", "legacy-17-eval", "legacy-14-eval")
# Ways that are left out, and why.
LEFT_OUT = {
    "grouped-open": LEGACY,  # the legacy exporter has no RMSNorm
    "partial-rotary": OPTIMIZED,  # 1 + weight is folded: the parameter is lost
    "padded": ("dynamo-18", "dynamo-20-optimized"),  # -inf is written as the smallest number
}
# What each block of the model must have become: op -> count in two blocks.
EXPECTED = {"titan.attention": 2, "titan.softmax": 0, "titan.transpose": 0, "titan.exp": 0, "titan.sqrt": 0, "titan.cos": 0}
# A norm of the one key head stays beside the transposition that a model cuts its keys with.
EXPECTED_OF = {"normed": {"titan.transpose": 2}}
RECIPE = '[loss]\nkind = "output"\n[batch]\nmicro = 2\nglobal = 2\n'

def count(lines, op):
    return sum(f"= {op} " in line for line in lines)


def raised(tools, path, recipe):
    run = subprocess.run([tools / "titan-compile", path, "--recipe", recipe, "--emit=import"], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return canonical(run.stdout)


def without_dropout(lines):
    """Exports for inference have no dropout."""
    kept, renamed = [], {}
    for line in lines:
        line = re.sub(r"[#@][\w.]+", lambda m: renamed.get(m[0], m[0]), line)
        dropout = re.match(r"(#\d+) = titan\.dropout (\S+)", line)
        if dropout:
            renamed[dropout[1]] = dropout[2]
        else:
            kept.append(re.sub(r"\{?p = [^,}]* : f64(, )?\}? ?", "", line))
    order = {}
    return [re.sub(r"#\d+", lambda m: order.setdefault(m[0], f"#{len(order)}"), line) for line in kept]


def check(name, tools, folder):
    torch.manual_seed(0)
    model = MODELS[name]()
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE)
    first, problems = None, []
    for way, options in WAYS.items():
        if way in LEFT_OUT.get(name, ()):
            continue
        path = folder / f"{name}-{way}.onnx"
        export(copy.deepcopy(model), (sample(),), ["x"], path, **options)
        try:
            lines = raised(tools, path, recipe)
        except RuntimeError as error:
            problems.append(f"{way}: {error}")
            continue
        for op, expected in (EXPECTED | EXPECTED_OF.get(name, {})).items():
            if count(lines, op) != expected:
                problems.append(f"{way}: {count(lines, op)} {op}, expected {expected}")
        lines = without_dropout(lines)
        if first is None:
            first = (way, lines)
        elif lines != first[1]:
            problems.append(f"{first[0]} and {way} differ at {first_difference(first[1], lines)}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--only", choices=sorted(MODELS))
    parser.add_argument("--keep", type=Path, help="leave the exports here")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in [arguments.only] if arguments.only else MODELS:
            problems = check(name, arguments.tools.resolve(), folder)
            failed += bool(problems)
            print(f"{'FAILED' if problems else 'ok    '} {name}", flush=True)
            for problem in problems:
                print(f"  {problem}", flush=True)
    print(f"{len(MODELS) if not arguments.only else 1} models, {failed} differ")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
