"""Titan's checkpoint files and PyTorch's are the same files: torch.distributed.checkpoint's HuggingFaceStorageReader and the
safetensors package read the folders of a checkpoint, and Titan reads what they write.

    test/peers/run-with-peers test/peers/checkpoint_files.py --peer build/dev/test/titan_checkpoint_peer --ckpt build/dev/bin/titan-ckpt
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

try:
    import safetensors.torch
    from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
    import torch.distributed.checkpoint as dcp
except ImportError as error:
    print(f"skipped: {error}: run scripts/install-peers")
    sys.exit(77)

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64}


def titan(peer, *arguments):
    """The tensors that the peer prints."""
    done = subprocess.run([peer, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tensors = {}
    for line in done.stdout.splitlines():
        name, dtype, shape, data = line.split(" ")
        extents = [int(extent) for extent in shape.split(",") if extent]
        raw = torch.frombuffer(bytearray.fromhex(data) or bytearray(1), dtype=torch.uint8)
        flat = raw[: len(data) // 2].view(DTYPES[dtype])
        tensors[name] = flat.reshape(extents)
    return tensors


def assert_same(found, wanted):
    assert found.keys() == wanted.keys(), (sorted(found), sorted(wanted))
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape, name
        assert torch.equal(found[name], tensor), name


def read_distributed(folder, wanted):
    """Through PyTorch's own reader, into zeroed tensors of the expected names."""
    state = {name: torch.zeros_like(tensor) for name, tensor in wanted.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    metadata = HuggingFaceStorageReader(str(folder)).read_metadata()
    assert metadata.state_dict_metadata.keys() == wanted.keys()
    return state


def check_reading_ours(peer, root):
    written = titan(peer, "save", root)
    checkpoint = root / "checkpoints" / "step-00000001"
    slots = {name: tensor for name, tensor in written.items() if name.endswith(".exp_avg")}
    model = {name: tensor for name, tensor in written.items() if name not in slots}
    for folder, wanted in (("model", model), ("optimizer", slots)):
        assert_same(read_distributed(checkpoint / folder, wanted), wanted)
        (shard,) = (checkpoint / folder).glob("*.safetensors")
        assert_same(safetensors.torch.load_file(shard), wanted)
    index = json.loads((checkpoint / "model" / "model.safetensors.index.json").read_text())
    assert index["weight_map"].keys() == model.keys()
    assert index["metadata"]["total_size"] == sum(t.nbytes for t in model.values())
    for name, file in index["weight_map"].items():
        with safetensors.safe_open(checkpoint / "model" / file, "pt") as opened:
            assert torch.equal(opened.get_tensor(name), model[name])
    return model


def check_reading_ranks(peer, root):
    """A checkpoint of four ranks, each of which wrote what it has of tensors that are cut along rows, columns, or both."""
    written = titan(peer, "save-ranks", root)
    checkpoint = root / "checkpoints" / "step-00000001"
    slots = {name: tensor for name, tensor in written.items() if name.endswith(".exp_avg")}
    model = {name: tensor for name, tensor in written.items() if name not in slots}
    for folder, wanted in (("model", model), ("optimizer", slots)):
        assert len(list((checkpoint / folder).glob("*.safetensors"))) == 4, folder
        assert_same(read_distributed(checkpoint / folder, wanted), wanted)
    assert not (checkpoint / "model" / "model.safetensors.index.json").exists()


def other_values(model):
    """The same names and types with other values."""
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.randint(0, 100, tensor.shape, generator=generator).to(tensor.dtype)
        for name, tensor in model.items()
    }


def check_reading_theirs(peer, root, model):
    wanted = other_values(model)
    whole = root / "whole.safetensors"
    safetensors.torch.save_file(wanted, whole, metadata={"format": "pt"})
    assert_same(titan(peer, "init", whole), wanted)

    wrapped = root / "wrapped.safetensors"
    safetensors.torch.save_file({f"_orig_mod.module.{n}": t for n, t in wanted.items()}, wrapped)
    assert_same(titan(peer, "init", wrapped), wanted)

    saved = root / "dcp"
    mapping = {name: 1 + i % 2 for i, name in enumerate(wanted)}
    dcp.save(wanted, storage_writer=HuggingFaceStorageWriter(str(saved), mapping), no_dist=True)
    assert_same(titan(peer, "init", saved), wanted)
    assert_same(titan(peer, "init", saved / "model.safetensors.index.json"), wanted)


def check_pieces_of_theirs(peer, root, model):
    """Two ranks' shards, cut at odd places, in the layout of HuggingFaceStorageWriter(save_distributed=True)."""
    wanted = other_values(model)
    folder = root / "pieces"
    folder.mkdir()
    for rank in (1, 2):
        pieces, offsets = {}, {}
        for name, tensor in wanted.items():
            if tensor.ndim == 0 or tensor.numel() == 0:
                if rank == 1:
                    pieces[name], offsets[name] = tensor, [0] * tensor.ndim
                continue
            dim = tensor.ndim - 1
            cut = tensor.shape[dim] // 2
            start, end = ((0, cut), (cut, tensor.shape[dim]))[rank - 1]
            pieces[name] = tensor.narrow(dim, start, end - start).contiguous()
            offsets[name] = [0] * dim + [start]
        info = {name: {"saved_offsets": offset} for name, offset in offsets.items()}
        metadata = {"DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)}
        file = folder / f"shard-{rank:05}-model-00001-of-00001.safetensors"
        safetensors.torch.save_file(pieces, file, metadata=metadata)
    assert_same(read_distributed(folder, wanted), wanted)
    assert_same(titan(peer, "init", folder), wanted)


def check_imports(peer, ckpt, root):
    """titan-ckpt import of what the real packages wrote, bf16 among it, becomes a checkpoint with these tensors."""
    written = titan(peer, "save", root / "run")
    like = root / "run" / "checkpoints" / "step-00000001"
    model = {name: tensor for name, tensor in written.items() if not name.endswith(".exp_avg")}
    wanted = other_values(model)
    halves = {name: t.bfloat16() if t.dtype == torch.float32 else t for name, t in wanted.items()}
    safetensors.torch.save_file(wanted, root / "file.safetensors", metadata={"format": "pt"})
    safetensors.torch.save_file(halves, root / "halves.safetensors")
    mapping = {name: 1 + i % 2 for i, name in enumerate(wanted)}
    dcp.save(wanted, storage_writer=HuggingFaceStorageWriter(str(root / "hf"), mapping), no_dist=True)
    dcp.save(wanted, storage_writer=HuggingFaceStorageWriter(str(root / "dcp"), save_distributed=True), no_dist=True)
    for source in ("file.safetensors", "halves.safetensors", "hf", "hf/model.safetensors.index.json", "dcp"):
        run = root / ("import-" + source.replace("/", "-"))
        subprocess.run([ckpt, "import", root / source, "-o", run, "--like", like], check=True, capture_output=True)
        subprocess.run([ckpt, "verify", run], check=True, capture_output=True)
        checkpoint = run / "checkpoints" / "step-00000000"
        # Small integers, which every floating-point type has.
        assert_same(read_distributed(checkpoint / "model", wanted), wanted)
        slots = {name: torch.zeros_like(tensor) for name, tensor in written.items() if name.endswith(".exp_avg")}
        assert_same(read_distributed(checkpoint / "optimizer", slots), slots)


def check_pickles(peer, ckpt, root):
    """A pickle is refused, and what the refusal says makes a file that is imported."""
    written = titan(peer, "save", root / "run")
    like = root / "run" / "checkpoints" / "step-00000001"
    wanted = other_values({name: tensor for name, tensor in written.items() if not name.endswith(".exp_avg")})
    torch.save(wanted, root / "w.pt")
    torch.save(wanted, root / "w.old", _use_new_zipfile_serialization=False)
    dcp.save(wanted, checkpoint_id=str(root / "pickles"), no_dist=True)
    for source in ("w.pt", "w.old", "pickles"):
        done = subprocess.run([ckpt, "import", source, "-o", "never", "--like", like], cwd=root, capture_output=True, text=True)
        assert done.returncode == 1 and "which may run code" in done.stderr, done.stderr
        command = done.stderr.strip().split("convert it with python3 ")[1]
        subprocess.run(f"{sys.executable} {command}", shell=True, cwd=root, check=True, capture_output=True)
        run = root / f"import-{source}"
        subprocess.run([ckpt, "import", "model.safetensors", "-o", run, "--like", like], cwd=root, check=True, capture_output=True)
        assert_same(read_distributed(run / "checkpoints" / "step-00000000" / "model", wanted), wanted)
        (root / "model.safetensors").unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="the titan_checkpoint_peer to run")
    parser.add_argument("--ckpt", required=True, help="the titan-ckpt to run")
    arguments = parser.parse_args()
    peer, ckpt = (Path(program).resolve() for program in (arguments.peer, arguments.ckpt))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        model = check_reading_ours(peer, root / "run")
        check_reading_ranks(peer, root / "ranks")
        check_reading_theirs(peer, root, model)
        check_pieces_of_theirs(peer, root, model)
        check_imports(peer, ckpt, root / "imports")
        check_pickles(peer, ckpt, root / "pickles")
    print(f"ok: torch {torch.__version__} and safetensors {safetensors.__version__} read and write Titan's files")


if __name__ == "__main__":
    main()
