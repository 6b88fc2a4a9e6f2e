"""Exports a Llama of 1.24 billion parameters from PyTorch: llama.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/llama/export.py [--length T] [OUTPUT]      (scripts/install-peers makes .venv)

The sizes of Llama-3.2-1B: 16 layers, width 2048, 32 heads that share 8 key heads, a vocabulary of 128256. The same PyTorch writes the
same bytes.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import llama

if __name__ == "__main__":
    llama.export(__doc__, llama.LLAMA_1B, Path(__file__).with_name("llama.onnx"))
