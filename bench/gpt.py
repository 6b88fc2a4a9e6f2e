"""GPTs, AdamW, two threads: the time of one training step and its memory, Titan beside its peers.

    gpt.py [--rows char,gpt2-64,gpt2-256] [--precision f32,bf16] [--only titan,jax] [--rounds 5] [--save]

All contenders of a row start from the same weights and see the same batches; those whose first losses are not PyTorch's are named. The figure is
the median over rounds of (seconds of a round / steps). The bound of a row is

    FLOP / ceiling of products + bytes of one pass over the optimizer's state / copy bandwidth

with FLOP of contenders/gpt/prepare.py, 28 bytes a parameter (parameter and two slots read and written, gradient read), and the machine's two
speeds as the Titan job's `profile` measures them in this run.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from side_by_side import CONTENDERS, HERE, add_options, measure, processor, start

sys.path.insert(0, str(CONTENDERS / "gpt"))
import protocol

ROWS = {"char": ("char", 8, 256, 3), "gpt2-64": ("gpt2", 4, 64, 2), "gpt2-256": ("gpt2", 4, 256, 1)}  # model, batch, length, steps of a round
OPTIMIZER_BYTES = 28
# Relative differences of the first losses from the first contender's: roundings only.
LOSS_TOLERANCE = {"f32": 1e-4, "bf16": 1e-2}


def contenders_of(folder, precision, tools):
    return {
        "PyTorch eager": ["gpt/pytorch.py", folder, precision],
        "Titan": ["gpt/titan.py", folder, precision, tools],
        "torch.compile": ["gpt/pytorch.py", folder, precision, "compile"],
        "JAX jit": ["gpt/jax_jit.py", folder, precision],
        "ONNX Runtime Training": ["gpt/onnx_runtime.py", folder, precision],
    }


def prepare(folder, name):
    model, batch, length, _ = ROWS[name]
    print(f"bench: preparing {name}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, CONTENDERS / "gpt/prepare.py", folder, model, str(batch), str(length)],
                          env=dict(os.environ, PYTHONPATH=str(CONTENDERS)), capture_output=True, text=True)
    said = done.stderr.strip().splitlines() or [""]
    if done.returncode != 0:
        sys.exit(f"bench: {name} cannot be prepared: {said[-1]}")
    print(*(line for line in said if line.startswith("bench:")), sep="\n", end="", file=sys.stderr, flush=True)
    return json.loads((folder / "row.json").read_text())


def bound_of(row, contenders):
    """Seconds, and the two speeds; nothing where no Titan job measured them."""
    for c in contenders:
        ceiling, copy = c.facts.get("gemm_ceiling_flops", 0), c.facts.get("copy_bytes_per_second", 0)
        if ceiling and copy:
            return {"seconds": row["flops"] / ceiling + OPTIMIZER_BYTES * row["parameters"] / copy, "gemm_ceiling_flops": ceiling,
                    "copy_bytes_per_second": copy}
    return None


def disagreements(contenders, precision):
    """A line for each contender whose first losses are not those of the first one."""
    lines = []
    for c in contenders[1:]:
        pairs = list(zip(c.facts["losses"], contenders[0].facts["losses"]))
        worst = max(abs(a - b) / abs(b) for a, b in pairs)
        if not worst <= LOSS_TOLERANCE[precision]:
            lines.append(f"{c.name}: losses {c.facts['losses']} are not {contenders[0].name}'s {contenders[0].facts['losses']}: its time does not count")
    return lines


def run_row(name, precision, folder, row, arguments):
    """What results/*.json says of one row and precision."""
    contenders, skipped = start(contenders_of(folder, precision, arguments.tools), arguments.only)
    if not contenders:
        return {"row": name, "precision": precision, **row, "bound": None, "contenders": [], "wrong": [], "skipped": skipped}
    steps = arguments.steps or ROWS[name][3]
    wrong = disagreements(contenders, precision)
    measure(contenders, arguments.rounds, steps)
    return {"row": name, "precision": precision, **row, "rounds": arguments.rounds, "steps": steps, "bound": bound_of(row, contenders),
            "contenders": [{"name": c.name, **c.facts, "seconds": c.times, "median": c.median(),
                            "peak_bytes": int(max(extra[0] for extra in c.extra))} for c in contenders],
            "wrong": wrong, "skipped": skipped}


def text_of(result):
    tokens = result["batch"] * result["length"]
    lines = [f"### {result['row']}, {result['precision']}", "",
             f"{result['parameters'] / 1e6:.1f}M parameters, batch {result['batch']}, length {result['length']}, {result['flops'] / 1e9:.1f} GFLOP a step"]
    bound = result["bound"]
    if bound:
        lines[-1] += (f"; bound {bound['seconds'] * 1e3:.1f} ms ({bound['gemm_ceiling_flops'] / 1e9:.0f} GFLOP/s, "
                      f"{bound['copy_bytes_per_second'] / 1e9:.1f} GB/s)")
    lines += ["", "| | ms a step, median | lowest | highest | tokens/s | share of the bound | against the best peer | peak memory | first step, compilation included |",
              "|---|---|---|---|---|---|---|---|---|"]
    best = min((c["median"] for c in result["contenders"] if c["name"] != "Titan"), default=None)
    for c in result["contenders"]:
        share = f"{100 * bound['seconds'] / c['median']:.0f} %" if bound else ""
        ratio = f"{c['median'] / best:.2f}" if best else ""
        lines.append(f"| {c['name']} {c['version']} | {c['median'] * 1e3:.1f} | {min(c['seconds']) * 1e3:.1f} | {max(c['seconds']) * 1e3:.1f} "
                     f"| {tokens / c['median']:.0f} | {share} | {ratio} | {c['peak_bytes'] / 1e9:.2f} GB | {c['first_step']:.1f} s |")
    for kind in ("wrong", "skipped"):
        lines += ["", *(f"{kind}: {line}" for line in result[kind])] if result[kind] else []
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--precision", default="f32,bf16", help="f32, bf16 or both (default)")
    add_options(parser, rounds=5, steps=0)
    arguments = parser.parse_args()
    rows, precisions = arguments.rows.split(","), arguments.precision.split(",")
    for given, known in ((rows, ROWS), (precisions, LOSS_TOLERANCE)):
        for word in given:
            if word not in known:
                parser.error(f"'{word}' is none of {', '.join(known)}")
    if arguments.save and arguments.rounds < 5:
        parser.error("--rounds must be at least 5 to be saved")

    head = f"GPTs, AdamW, {protocol.THREADS} threads; {arguments.rounds} rounds\n{processor()[0]}, {datetime.date.today()}\n"
    print(head)
    results = []
    for name in rows:
        with tempfile.TemporaryDirectory(prefix="titan-bench-") as temporary:
            folder = Path(temporary)
            row = prepare(folder, name)
            for precision in precisions:
                results.append(run_row(name, precision, folder, row, arguments))
                print(text_of(results[-1]), flush=True)
    if arguments.save:
        path = HERE / "results" / f"{datetime.date.today()}-{processor()[1]}-gpt.md"
        path.write_text("Made by `bench/run gpt --save`.\n\n" + head + "\n" + "\n".join(map(text_of, results)))
        record = {"date": str(datetime.date.today()), "processor": processor()[0], "threads": protocol.THREADS, "results": results}
        path.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"bench: wrote {path} and .json", file=sys.stderr)
    ok = all(result["contenders"] and not result["wrong"] for result in results)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
