"""Exports the demo's language model from PyTorch: char.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/char/export.py [--length T] [OUTPUT]      (scripts/install-peers makes .venv)

Bytes in, bytes out: 6 layers, width 384, 6 heads, windows of up to 256 bytes. No dropout: in a run of a few hundred steps no byte is
seen twice. The same PyTorch writes the same bytes.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import gpt

if __name__ == "__main__":
    gpt.export(__doc__, gpt.CHAR, Path(__file__).with_name("char.onnx"))
