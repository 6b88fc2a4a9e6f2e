"""check-not-yet.py TOOLS README MODEL RECIPE: README's section "What it does not do yet" is what the tools refuse, and all of it.

Every message of the section is one that a command here gets; every refusal here, and every "not available" of the sources, stands in the
section; and the keys that it marks as without effect on one rank have none.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "errors"))
from onnx_bytes import graph, model, node, tensor, value  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# Values other than the default of keys that are marked: none has an effect on one rank. Some are
# refused on more.
LATER = ("mesh.strategy=tensor", 'mesh.tensor_rules=["*.weight"]')
IDLE = (*LATER, "mesh.sync=immediate", "mesh.sync_every=2", "mesh.bucket=0", "mesh.prefetch=3",
        "precision.reduce_dtype=bf16", "mesh.strategy=fsdp", "mesh.outer=zero1", "mesh.reshard=never", "mesh.allow_reshard=true")

# Each is refused with a message of the section.
REFUSED = (["titan-compile", "{model}", "--target=cuda", "--set", "mesh.axes={{ shard = 2 }}", "--set", "batch.global=16"],
           ["titan-compile", "{model}", "--target=cuda", "--set", "mesh.reduce=tree"],
           ["titan-compile", str(ROOT / "test/training/modules/coupling-in-f64/dynamo-eval-plain-20-batch-f64.onnx"), "--target=cuda",
            "--set", "loss.kind=mse"],
           ["titan-compile", "{model}", "--set", "mesh.axes={{ tensor = 2 }}"],
           *(["titan-compile", "{model}", "--set", "mesh.axes={{ shard = 2 }}", "--set", "batch.global=16", "--set", key] for key in LATER),
           ["titan-compile", "{model}", "--set", "mesh.axes={{ shard = 2 }}", "--set", "batch.global=16", "--set", "mesh.strategy=fsdp", "--set", "mesh.outer=zero1"],
           ["titan-run", "--eager", "{model}", "--engine=kernels", "train"],
           ["titan-ckpt", "export", "{scratch}", "-o", "{scratch}/w.onnx"],
           ["titan-compile", "{scratch}/indices.onnx"], ["titan-compile", "{scratch}/peepholes.onnx"],
           ["titan-compile", "{scratch}/remainder.onnx", "--target=cuda", "--set", "loss.kind=mse"],
           ["titan-compile", "{scratch}/instances.onnx"])


def section(readme):
    return readme.split("## What it does not do yet", 1)[1].split("\n## ", 1)[0]


def messages_of(text):
    """The messages in the table's second column; `(Name)` alone stands for the op's message."""
    found = []
    for row in re.findall(r"^\| .* \| (.*) \|$", text, re.MULTILINE):
        for message in re.findall(r"`([^`]+)`", row):
            found.append(f"{message}: the op is not supported" if re.fullmatch(r"\(\w+\)", message) else message)
    return found


def write_inputs(scratch):
    def write(name, outputs, *of, **attributes):
        nodes = [node(*of, f"/{name.lower()}", **attributes)]
        ports = [value(output, ["batch", 3, 8]) for output in outputs]
        (scratch / f"{name}.onnx").write_bytes(model(graph(nodes, [value("x", ["batch", 3, 8])], ports)))

    write("peepholes", ["y"], "LSTM", ["x", "x", "x", "", "", "", "", "x"], ["y"])
    view = [node("Constant", [], ["one"], "/one", value_ints=[1, -1, 8]), node("Reshape", ["x", "one"], ["view"], "/view"),
            node("BatchNormalization", ["view", *["v"] * 4], ["y"], "/norm")]
    instances = graph(view, [value("x", ["batch", 3, 8])], [value("y", [1, 24, 8])], [tensor("v", np.ones(24, np.float32))])
    (scratch / "instances.onnx").write_bytes(model(instances))
    nodes = [node("Mul", ["x", "w"], ["wx"], "/scale"), node("Mod", ["wx", "w"], ["y"], "/rest", fmod=1)]
    remainder = graph(nodes, [value("x", ["batch", 8])], [value("y", ["batch", 8])], [tensor("w", np.ones(8, np.float32))])
    (scratch / "remainder.onnx").write_bytes(model(remainder))
    write("indices", ["y", "i"], "MaxPool", ["x"], ["y", "i"], kernel_shape=[1])


def said_by(tools, command, places):
    command = [part.format(**places) for part in command]
    done = subprocess.run([tools / command[0], *command[1:]], capture_output=True, text=True)
    return done.returncode, done.stderr


def planned(tools, source, recipe, *options):
    """The planned functions, without the recipe that the module carries."""
    done = subprocess.run([tools / "titan-compile", source, "--recipe", recipe, "--emit=plan", *options], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("module")]


def check(tools, readme, source, recipe):
    text, wrong = section(readme.read_text()), []
    messages = messages_of(text)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        write_inputs(scratch)
        heard = ""
        for command in REFUSED:
            code, said = said_by(tools, command, {"model": source, "scratch": scratch})
            heard += said
            if code == 0 or not any(message in said for message in messages):
                wrong.append(f"exit {code} of {' '.join(command)}, whose message is not in the section: {said.strip()}")
    wrong += [f"nothing is refused with '{message}'" for message in messages if message not in heard]
    # What the sources say is not there yet.
    for folder in ("compiler", "frontend", "runtime", "tools"):
        for path in sorted(path for path in (ROOT / folder).rglob("*.cpp") if not path.stem.endswith("Test")):
            source_text = re.sub(r'"\s*\n\s*"', "", path.read_text()).replace('\\"', '"')
            for said in re.findall(r"[^{}:;()]*? (?:is|are) not available (?:in this version|yet)", source_text):
                if said.strip().strip('"').strip() not in text:
                    wrong.append(f"{path.relative_to(ROOT)}: '{said.strip()}' is not in the section")
    base = planned(tools, source, recipe)
    wrong += [f"--set {key} changes the plan on one rank" for key in IDLE if planned(tools, source, recipe, "--set", key) != base]
    marked = [re.search(r"`\[mesh\]` \| all ‡", readme.read_text()), re.search(r'`reduce_dtype = "f32"` ‡', readme.read_text())]
    wrong += [] if all(marked) else ["[mesh] and precision.reduce_dtype are not marked with ‡"]
    return wrong


if __name__ == "__main__":
    tools, readme, source, recipe = map(Path, sys.argv[1:])
    wrong = check(tools, readme, source, recipe)
    print("\n".join(wrong) or "every refusal is listed, and every listed one is refused")
    sys.exit(1 if wrong else 0)
