"""check-every-model.py TITAN_COMPILE REFERENCES: every model and recipe that trains on one rank becomes the program of each of several.

On each mesh the loop runs a rank's microbatches, one collective sums a gradient for each trained parameter, and one the scalars. One more gathers what the
loop stacks for running statistics. One rank has no trace of it. The FLOP of a step are those of all ranks together. Each model is also sharded by a drawn strategy on a drawn mesh (TITAN_TEST_SEED draws
others): the gradient of each trained parameter is summed once over `shard`, and what zero updates in parts is gathered again. That program is lowered, too.
"""
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MICRO, LOCAL = 2, 3  # samples of a microbatch, microbatches of a rank
MESHES = {"{}": 1, "{ replicate = 2 }": 2, "{ shard = 3 }": 3}
SHARDED = [("zero1", 1, 2), ("zero1", 2, 3), ("zero2", 1, 7), ("fsdp", 1, 2), ("fsdp", 1, 5), ("fsdp", 2, 3), ("fsdp", 3, 2), ("hsdp", 2, 2), ("hsdp", 2, 4)]


def rows_of(module):
    """How many results the loop stacks."""
    return int((re.search(r"accum\.loop .*? stacked = (\d+)", module) or [0, 0])[1])


def are_rows(names, module):
    """Are these the buffers that the stacks go to, one for each?"""
    buffers = set(re.findall(r'titan\.state @"?([^" ]+)"? : .*kind buffer', module))
    return len(names) == rows_of(module) and set(names) <= buffers


def wrong_of(module, ranks):
    """What is not as it should be in the stage's text."""
    collectives = re.findall(r"dist\.\w+ .*?path = \[(.*?)\]", module[:module.index("func.func @eval(")])
    if ranks == 1:
        return ["one rank has something of dist"] if "dist." in module else []
    wrong = []
    trained = re.findall(r"titan\.state @\S+ : .*trainable", module)
    # Canonical names: quoted where they are no identifiers.
    names = [re.search(r'titan\.state @"?([^" ]+)', state).group(1) for state in trained]
    rows = rows_of(module)
    if len(collectives) != (3 if rows else 2):
        return [f"{len(collectives)} collectives"]
    gradients, scalars, *gathered = (re.findall(r'"(.*?)"', path) for path in collectives)
    if gathered and not are_rows(gathered[0], module):
        wrong.append(f"gathers {gathered[0]} of {rows} stacks")
    if sorted(gradients) != sorted(names):
        wrong.append(f"gradients of {gradients} are summed, trained are {names}")
    if scalars[1:] not in (["count", "stop"], ["count", "loss", "stop"]):  # what classes weigh becomes part of the loss
        wrong.append(f"scalars {scalars}")
    if not re.search(rf"accum\.loop \S+ in {LOCAL} running", module):
        wrong.append(f"no loop of {LOCAL} microbatches")
    return wrong


def exchanges_of(module):
    """(kind, axes, phase, names) of each collective of @step."""
    step = module[module.index("func.func @step("):]
    step = step[:step.find("\n  func.func")] if "\n  func.func" in step else step
    found = re.findall(r"dist\.(all_gather|all_reduce|reduce_scatter) .*?axes \[(.*?)\].*?\{(.*?)\} :", step)
    return [(kind, re.findall(r'"(.*?)"', axes), re.search(r"<phase (\w+)>", more).group(1), re.findall(r'"(.*?)"', re.search(r"path = \[(.*?)\]", more).group(1)))
            for kind, axes, more in found]


def names_in(exchanges, kind, phase, axes):
    """What the collectives of a kind and phase over exactly these axes take, each as often as they do."""
    return sorted(name for each, over, of, names in exchanges if (each, of, over) == (kind, phase, axes) for name in names)


def wrong_of_parts(module, strategy, replicate):
    """What is not as the strategy says in the stage's text."""
    exchanges, wrong = exchanges_of(module), []
    states = re.findall(r'titan\.state @"?([^" ]+)"? : (.*)', module)
    trained = [name for name, rest in states if "trainable" in rest]
    data = ["replicate", "shard"] if replicate > 1 else ["shard"]
    scattered = names_in(exchanges, "reduce_scatter", "backward", ["shard"])
    whole = names_in(exchanges, "all_reduce", "backward", data)
    if sorted(scattered + whole) != sorted(trained):
        wrong.append(f"gradients of {scattered} are scattered, of {whole} summed, trained are {trained}")
    if replicate > 1 and names_in(exchanges, "all_reduce", "backward", ["replicate"]) != scattered:
        wrong.append("what is scattered over shard is not summed over replicate")
    cut = sorted(name for name, rest in states if "placement =" in rest and name in trained)
    if cut != ([] if strategy.startswith("zero") else scattered):
        wrong.append(f"parameters {cut} are cut, gradients {scattered}")
    rows = next((names for kind, over, phase, names in exchanges if (kind, over, phase) == ("all_gather", data, "update") and are_rows(names, module)), [])
    if len(rows) != rows_of(module):
        wrong.append(f"the rows of {rows_of(module)} stacks are not gathered")
    updated = sorted(name for name in names_in(exchanges, "all_gather", "update", ["shard"]) if name not in rows)
    if strategy.startswith("zero") and updated != scattered:
        wrong.append("not every parameter whose gradient is scattered is gathered after its update")
    for phase in ("forward", "backward"):
        if len(set(gathered := names_in(exchanges, "all_gather", phase, ["shard"]))) != len(gathered):
            wrong.append(f"{phase} gathers twice: {gathered}")
    if not re.search(rf"accum\.loop \S+ in {LOCAL} running", module):
        wrong.append(f"no loop of {LOCAL} microbatches")
    return wrong


def flops_of(module):
    return int(re.search(r"func\.func @step\(.*titan\.model_flops = (\d+)", module).group(1))


class Compiler:
    def __init__(self, titan_compile, scratch):
        self.titan_compile, self.out = titan_compile, Path(scratch) / "shard.mlir"

    def shard(self, model, recipe, ranks, *settings, stage="shard"):
        """The text of a stage and an error, one of them empty."""
        keys = [f"batch.micro={MICRO}", f"batch.global={MICRO * LOCAL * ranks}", *settings]
        done = subprocess.run([self.titan_compile, model, "--recipe", recipe, *(word for key in keys for word in ("--set", key)), f"--emit={stage}", "-o", self.out],
                              capture_output=True, text=True)
        return (self.out.read_text(), "") if done.returncode == 0 else ("", done.stderr.strip())


def check(compiler, model, recipe, draws):
    """What is wrong with the programs of ranks of a model; how many were made."""
    wrong, flops = [], {}
    for axes, ranks in MESHES.items():
        module, error = compiler.shard(model, recipe, ranks, f"mesh.axes={axes}")
        wrong += [f"{axes}: {what}" for what in (wrong_of(module, ranks) if module else [error])]
        if module:
            flops[ranks] = flops_of(module)
    strategy, replicate, shard = draws.choice(SHARDED)
    ranks = replicate * shard
    settings = (f"mesh.axes={{ replicate = {replicate}, shard = {shard} }}", f"mesh.strategy={strategy}",
                f"mesh.reshard={draws.choice(['always', 'never', 'step'])}")
    module, error = compiler.shard(model, recipe, ranks, *settings)
    if module:  # the products are kernels where *schedule* put them
        lowered, error = compiler.shard(model, recipe, ranks, *settings, stage="lower")
        wrong += [] if lowered else [f"{strategy} on {replicate} x {shard}: {error}"]
    wrong += [f"{strategy} on {replicate} x {shard}: {what}" for what in (wrong_of_parts(module, strategy, replicate) if module else [error])]
    if module and ranks not in flops:
        flops[ranks] = flops_of(module)
    wrong += [f"{count} FLOP on {ranks} ranks, {flops[1]} on one" for ranks, count in flops.items() if 1 in flops and count != ranks * flops[1]]
    return wrong, len(MESHES) + 1


def main(titan_compile, references):
    seed = os.environ.get("TITAN_TEST_SEED", "20240611")
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        compiler = Compiler(titan_compile, scratch)
        for folder in sorted(path for path in references.iterdir() if path.is_dir()):
            model = sorted(folder.glob("*.onnx"))[0]
            for recipe in sorted(path for path in folder.glob("*.toml") if not path.name.endswith(".names.toml")):
                found, programs = check(compiler, model, recipe, random.Random(f"{seed} {folder.name} {recipe.name}"))
                wrong += [f"{model.relative_to(references)}, {recipe.name}, {what}" for what in found]
                tried += programs
    print(f"seed {seed} (TITAN_TEST_SEED)")
    return wrong, tried


if __name__ == "__main__":
    wrong, tried = main(*map(Path, sys.argv[1:]))
    print("\n".join(wrong) or f"{tried} programs")
    sys.exit(1 if wrong or not tried else 0)
