"""Writes what Titan starts from where it is measured by itself: prepare_alone.py FOLDER ROW. No PyTorch is needed.

FOLDER/data.npz     as prepare.py writes it
FOLDER/model.txt    the model as titan-compile knows it by name, and its options
"""
import sys
from pathlib import Path

import problem
import with_titan


def main(folder, name):
    row = problem.ROWS[name]
    problem.write_data(folder, row)
    with_titan.name_model(folder, row.named, "--set", 'data.fields={ images = "x" }')


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
