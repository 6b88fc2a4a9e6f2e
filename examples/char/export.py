"""Exports the demo's language model from PyTorch: char.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/char/export.py [--length T] [OUTPUT]      (scripts/install-peers makes .venv)

Bytes in, bytes out: 6 layers, width 384, 6 heads, windows of up to 256 bytes. No dropout: in a run of a few hundred steps no byte is
seen twice. The same PyTorch writes the same bytes.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpt import Sizes, export_structure  # noqa: E402

SIZES = Sizes(layers=6, width=384, heads=6, positions=256, vocabulary=256)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output", nargs="?", type=Path, default=Path(__file__).with_name("char.onnx"))
    parser.add_argument("--length", type=int, help="fix the number of positions (default: a dimension named seq)")
    arguments = parser.parse_args()
    export_structure(SIZES, arguments.output, arguments.length)
