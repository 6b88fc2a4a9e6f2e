"""Compiles and runs a Titan job, and reads what it wrote. Needs numpy only."""
import json
import struct
import subprocess
from pathlib import Path

import numpy as np

DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "U8": np.uint8}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class Failure(Exception):
    """A command failed or wrote something else than the contract says; the message is for a person."""


def run(command, limit=300):
    """Runs `command` for at most `limit` seconds; returns its standard output."""
    return done_of(command, limit).stdout


def notes(command, limit=300):
    """As `run`; returns what it said beside its output."""
    return done_of(command, limit).stderr


def done_of(command, limit):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        raise Failure(f"still running after {limit} s: {' '.join(map(str, command))}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-12:]
        raise Failure(f"exit {done.returncode} of {' '.join(map(str, command))}\n    " + "\n    ".join(said))
    return done


def compile_job(tools, model, recipe, job, *options):
    run([Path(tools) / "titan-compile", model, "--recipe", recipe, "-o", job, *options])


def train(job, directory, data, steps, threads=2, *options):
    """Returns the rows of metrics.jsonl, one for each step."""
    run([job, "train", "--out", directory, "--data", data, "--steps", steps, "--threads", threads, *options])
    return metrics_of(directory)


def metrics_of(directory):
    """The rows of metrics.jsonl that are steps. A line that a killed run left unfinished is no row."""
    content = (Path(directory) / "metrics.jsonl").read_text()
    rows = [json.loads(line) for line in content[:content.rfind("\n") + 1].splitlines()]
    return [row for row in rows if "loss" in row]


def losses_of(directory):
    return [row["loss"] for row in metrics_of(directory)]


def read_safetensors(folder):
    """{name: array} of all safetensors files of a folder; a tensor that is split over files is put together."""
    tensors = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack_from("<Q", content)
        header = json.loads(content[8:8 + length])
        metadata = header.pop("__metadata__", {})
        sharding = json.loads(metadata.get("DCP_SHARDING_INFO", "{}"))
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            flat = np.frombuffer(content[8 + length + first:8 + length + last], DTYPES[entry["dtype"]])
            offsets = sharding.get(name, {}).get("saved_offsets", [0] * len(entry["shape"]))
            tensors.setdefault(name, []).append((offsets, flat.reshape(entry["shape"])))
    return {name: assemble(pieces) for name, pieces in tensors.items()}


def write_safetensors(path, arrays):
    header, offset = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


def assemble(pieces):
    if len(pieces) == 1:
        return pieces[0][1]
    shape = np.max([np.add(offsets, piece.shape) for offsets, piece in pieces], axis=0)
    whole = np.empty(shape, pieces[0][1].dtype)
    for offsets, piece in pieces:
        whole[tuple(slice(o, o + n) for o, n in zip(offsets, piece.shape))] = piece
    return whole


def checkpoint(directory, step):
    """The model tensors of the committed checkpoint of `step`."""
    folder = Path(directory) / "checkpoints" / f"step-{step:08d}" / "model"
    if not folder.is_dir():
        raise Failure(f"no checkpoint in {folder}")
    return read_safetensors(folder)
