"""Writes what Titan starts from where it is measured by itself: prepare_alone.py FOLDER. No PyTorch is needed.

FOLDER/data.npz     as prepare.py writes it
FOLDER/model.txt    the model as titan-compile knows it by name
"""
import problem
import with_titan

if __name__ == "__main__":
    problem.folder().mkdir(parents=True, exist_ok=True)
    problem.write_data()
    with_titan.name_model(problem.folder(), f"nn:mlp?inputs={problem.FEATURES},width={problem.HIDDEN},layers=2,outputs={problem.CLASSES}")
