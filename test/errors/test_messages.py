#!/usr/bin/env python3
"""Whole messages of a job: the sentence that a user reads, not only the names in it."""
import io
import unittest
import zipfile

import numpy as np

from support import INPUTS, USAGE, ErrorTest

SAMPLES = 64
SHAPE = f"'shape': ({SAMPLES}, {INPUTS}), "


def npy(header, data=b""):
    """A .npy file of version 1 whose header is `header`."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


class Arrays(ErrorTest):
    def refuse(self, x, says):
        """data.npz with the member x.npy = `x`."""
        targets = io.BytesIO()
        np.save(targets, np.zeros(SAMPLES, np.int64))
        with zipfile.ZipFile(self.folder / "data.npz", "w") as archive:
            archive.writestr("x.npy", x)
            archive.writestr("targets.npy", targets.getvalue())
        self.train_refused("--data", "data.npz", says=["data.npz", says])

    def test_headers(self):
        order = "'fortran_order': False, "
        for header, says in {
                "{'descr': '', " + order + SHAPE + "}": "the dtype is empty",
                "{'descr': '>f4', " + order + SHAPE + "}": "dtype '>f4' is big-endian: save it with .astype('<f4')",
                "{'descr': '<c8', " + order + SHAPE + "}": "dtype '<c8' is not supported: use float, int, bool or an unsigned type of up to 32 bits",
                "{'descr': [('a', '<f4')], " + order + SHAPE + "}": "structured dtypes are not supported: save one array a field",
                "{'descr': '<f4', 'fortran_order': True, " + SHAPE + "}": "the array is in Fortran order: save numpy.ascontiguousarray(x)",
                "{'descr': '<f4', 'fortran_order': None, " + SHAPE + "}": "fortran_order is neither True nor False",
                "{'descr': '<f4', " + order + "'shape': (-1, 3), }": "the shape has an extent that is no size",
                "{'descr': '<f4', " + order + order + SHAPE + "}": "the header has 'fortran_order' twice",
                "{'descr': '<f4', 'colour': 'red', }": "the header has an unknown key",
                "{'descr': '<f4', " + order + "}": "the header needs 'descr', 'fortran_order' and 'shape'",
                "{'descr': '<f4', " + order + SHAPE + "} and more": "the header goes on after its dict",
                "{descr: '<f4'}": "the header has no string where one is expected"}.items():
            with self.subTest(header=header):
                self.refuse(npy(header), says)

    def test_a_header_that_is_cut(self):
        self.refuse(npy("{'descr': '<f4'}")[:-4], "the .npy header of 16 bytes is cut: 12 are left")

    def test_of_a_data_set(self):
        (self.folder / "data.csv").write_text("1,2\n")
        self.train_refused("--data", "data.csv", says="'data.csv' has extension '.csv': data files are .npy, .npz, .safetensors, .bin or .txt")
        self.train_refused("--set", "data.fields={ images = 'x' }", says="data.fields: the job reads no 'images'; it reads: ")


class CommandLine(ErrorTest):
    def test_of_flags(self):
        for arguments, says in {("--map", "a=b"): "--fresh, --map, --ignore and --cast belong to --init, which is not given",
                                ("--init", "w.safetensors", "--map", "ab"): "--map 'ab' is not <name in the file>=<canonical name>",
                                ("--steps", "many"): "see --help",
                                ("--device=", "--steps", "2"): "--device= has no value: write one behind the =, or leave the option out"}.items():
            with self.subTest(arguments=arguments):
                self.train_refused(*arguments, code=USAGE, says=says)
        self.refused(USAGE, self.job, "jump", says="unknown command 'jump': use train, eval, predict, sample, plan, info, profile, compare or tune")

    def test_of_keys(self):
        self.train_refused("--set", "optimizer.kind=sgd", code=USAGE, says="optimizer.kind is fixed when the job is compiled: compile it again with --set")
        self.train_refused("--set", "train.eval_every=2", says="train.eval_every = 2, but data.eval names no file")

    def test_of_checkpoints(self):
        (self.folder / "empty").mkdir()
        self.train_refused("--resume", "empty", says="'empty' is neither a checkpoint nor a run directory with one")


if __name__ == "__main__":
    unittest.main()
