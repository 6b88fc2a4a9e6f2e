"""Writes what Titan starts from where it is measured by itself: prepare_alone.py FOLDER ROW BATCH LENGTH. No PyTorch is needed.

FOLDER/row.json      as prepare.py writes it, without the number of parameters
FOLDER/model.txt     the model as titan-compile knows it by name
FOLDER/tokens.bin    uint16 tokens; a batch is consecutive windows
"""
import json
import sys
from pathlib import Path

import problem

# As examples/gpt.py has them.
SIZES = {"char": dict(layers=6, width=384, heads=6, length=256, vocab=256),
         "gpt2": dict(layers=12, width=768, heads=12, length=1024, vocab=50304)}


def main(folder, name, batch, length):
    folder.mkdir(parents=True, exist_ok=True)
    sizes = SIZES[name]
    (folder / "model.txt").write_text("nn:gpt?" + ",".join(f"{key}={value}" for key, value in sizes.items()))
    problem.write_tokens(folder, sizes["vocab"], batch, length)
    (folder / "row.json").write_text(json.dumps({
        "model": name, "batch": batch, "length": length, "layers": sizes["layers"], "width": sizes["width"], "heads": sizes["heads"],
        "vocabulary": sizes["vocab"]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
