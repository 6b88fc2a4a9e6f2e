"""check-every-model.py TITAN_COMPILE REFERENCES: every model and recipe that trains on one rank becomes the program of each of several.

On each mesh the loop runs a rank's microbatches, one collective sums a gradient for each trained parameter, and one the scalars. One rank has no
trace of it. The FLOP of a step are those of all ranks together.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MICRO, LOCAL = 2, 3  # samples of a microbatch, microbatches of a rank
MESHES = {"{}": 1, "{ replicate = 2 }": 2, "{ shard = 3 }": 3}


def wrong_of(module, ranks):
    """What is not as it should be in the stage's text."""
    collectives = re.findall(r"dist\.\w+ .*?path = \[(.*?)\]", module)
    if ranks == 1:
        return ["one rank has something of dist"] if "dist." in module else []
    wrong = []
    trained = re.findall(r"titan\.state @\S+ : .*trainable", module)
    # Canonical names: quoted where they are no identifiers.
    names = [re.search(r'titan\.state @"?([^" ]+)', state).group(1) for state in trained]
    if len(collectives) != 2:
        return [f"{len(collectives)} collectives"]
    gradients, scalars = (re.findall(r'"(.*?)"', path) for path in collectives)
    if sorted(gradients) != sorted(names):
        wrong.append(f"gradients of {gradients} are summed, trained are {names}")
    if scalars[1:] != ["count", "stop"]:
        wrong.append(f"scalars {scalars}")
    if not re.search(rf"accum\.loop \S+ in {LOCAL} running", module):
        wrong.append(f"no loop of {LOCAL} microbatches")
    return wrong


def flops_of(module):
    return int(re.search(r"func\.func @step\(.*titan\.model_flops = (\d+)", module).group(1))


def main(titan_compile, references):
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in sorted(path for path in references.iterdir() if path.is_dir()):
            model = sorted(folder.glob("*.onnx"))[0]
            for recipe in sorted(path for path in folder.glob("*.toml") if not path.name.endswith(".names.toml")):
                flops = {}
                for axes, ranks in MESHES.items():
                    out = Path(scratch) / "shard.mlir"
                    done = subprocess.run([titan_compile, model, "--recipe", recipe, "--set", f"mesh.axes={axes}", "--set", f"batch.micro={MICRO}",
                                           "--set", f"batch.global={MICRO * LOCAL * ranks}", "--emit=shard", "-o", out], capture_output=True, text=True)
                    found = wrong_of(out.read_text(), ranks) if done.returncode == 0 else [done.stderr.strip()]
                    wrong += [f"{model.relative_to(references)}, {recipe.name}, {axes}: {what}" for what in found]
                    if done.returncode == 0:
                        flops[ranks] = flops_of(out.read_text())
                    tried += 1
                wrong += [f"{model.relative_to(references)}, {recipe.name}: {count} FLOP on {ranks} ranks, {flops[1]} on one"
                          for ranks, count in flops.items() if count != ranks * flops[1]]
    return wrong, tried


if __name__ == "__main__":
    wrong, tried = main(*map(Path, sys.argv[1:]))
    print("\n".join(wrong) or f"{tried} programs")
    sys.exit(1 if wrong or not tried else 0)
