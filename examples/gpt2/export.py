"""Exports GPT-2 124M from PyTorch: gpt2.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/gpt2/export.py [--length T] [OUTPUT]      (scripts/install-peers makes .venv)

12 layers, width 768, 12 heads, 1024 positions; the vocabulary of 50257 is padded to 50304 as in nanoGPT. The same PyTorch writes the
same bytes.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gpt import Sizes, export_structure  # noqa: E402

SIZES = Sizes(layers=12, width=768, heads=12, positions=1024, vocabulary=50304)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output", nargs="?", type=Path, default=Path(__file__).with_name("gpt2.onnx"))
    parser.add_argument("--length", type=int, help="fix the number of positions (default: a dimension named seq)")
    arguments = parser.parse_args()
    export_structure(SIZES, arguments.output, arguments.length)
