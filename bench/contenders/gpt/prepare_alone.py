"""Writes what Titan starts from where it is measured by itself: prepare_alone.py FOLDER ROW BATCH LENGTH. No PyTorch is needed.

FOLDER/row.json      as prepare.py writes it, without the number of parameters
FOLDER/model.txt     the model as titan-compile knows it by name, and its options
FOLDER/tokens.bin    uint16 tokens; a batch is consecutive windows
"""
import json
import sys
from pathlib import Path

import problem
import with_titan

# Family and sizes: as examples/gpt.py has them, and a Llama of 1.2 billion parameters; tokens are uint16, so those above do not occur.
MODELS = {"char": ("gpt", dict(layers=6, width=384, heads=6, length=256, vocab=256)),
          "gpt2": ("gpt", dict(layers=12, width=768, heads=12, length=1024, vocab=50304)),
          "llama": ("llama", dict(layers=16, width=2048, heads=32, groups=8, hidden=8192, length=8192, vocab=128256))}


def main(folder, name, batch, length):
    folder.mkdir(parents=True, exist_ok=True)
    family, sizes = MODELS[name]
    options = ",".join(f"{key}={value}" for key, value in sizes.items())
    with_titan.name_model(folder, f"nn:{family}?{options}", "--set", f"model.dims.seq={length}")
    problem.write_tokens(folder, min(sizes["vocab"], 1 << 16), batch, length)
    (folder / "row.json").write_text(json.dumps({
        "model": name, "batch": batch, "length": length, "layers": sizes["layers"], "width": sizes["width"], "heads": sizes["heads"],
        "vocabulary": sizes["vocab"]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
