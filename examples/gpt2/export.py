"""Exports GPT-2 124M from PyTorch: gpt2.onnx, its structure only (the recipe initialises the weights).

    .venv/bin/python examples/gpt2/export.py [--length T] [OUTPUT]      (scripts/install-peers makes .venv)

12 layers, width 768, 12 heads, 1024 positions; the vocabulary of 50257 is padded to 50304 as in nanoGPT. The same PyTorch writes the
same bytes.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import gpt

if __name__ == "__main__":
    gpt.export(__doc__, gpt.GPT2, Path(__file__).with_name("gpt2.onnx"))
