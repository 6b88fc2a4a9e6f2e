"""Checkpoints that do not belong to the job, and checkpoints that were damaged."""
import json
import re
import shutil
import struct
import unittest

import numpy as np

from support import BAD_INPUT, CKPT, ENVIRONMENT, MODEL, PEER, USAGE, ErrorTest, compiled_job, tree
from titan_job import write_safetensors

WEIGHTS = {"0.weight": (16, 12), "0.bias": (16,), "2.weight": (16, 16), "2.bias": (16,), "4.weight": (5, 16), "4.bias": (5,)}


class Damage(ErrorTest):
    """Two committed checkpoints; the newest is damaged."""

    def setUp(self):
        super().setUp()
        self.train("--steps", 2)
        self.train("--steps", 4)

    def files(self):
        return sorted(path for path in self.checkpoint.rglob("*") if path.is_file())

    def readers(self, says=()):
        """Whoever reads this checkpoint by its name refuses it, in the same way."""
        for command in ("eval", "predict"):
            extra = ("-o", "out.npz") if command == "predict" else ()
            self.refused(BAD_INPUT, self.job, command, "--ckpt", self.checkpoint, "--data", "data.npz", *extra, says=says)
        self.refused(BAD_INPUT, CKPT, "verify", self.checkpoint, says=says, lines=20)

    def test_every_file_removed(self):
        for path in self.files():
            with self.subTest(file=path.name):
                content = path.read_bytes()
                path.unlink()
                self.readers()
                path.write_bytes(content)

    def test_every_file_truncated(self):
        for path in self.files():
            content = path.read_bytes()
            for size in (0, 7, len(content) // 2, len(content) - 1):
                with self.subTest(file=path.name, size=size):
                    path.write_bytes(content[:size])
                    self.readers(says=path.name)
            path.write_bytes(content)

    def test_every_file_grown(self):
        for path in self.files():
            with self.subTest(file=path.name):
                content = path.read_bytes()
                path.write_bytes(content + b" x")
                self.readers()
                path.write_bytes(content)

    def test_every_region_flipped(self):
        for path in self.files():
            content = path.read_bytes()
            for position in range(0, len(content), max(1, len(content) // 12)):
                with self.subTest(file=path.name, position=position):
                    changed = bytearray(content)
                    changed[position] ^= 0x10
                    path.write_bytes(changed)
                    self.refused(BAD_INPUT, self.job, "eval", "--ckpt", self.checkpoint, "--data", "data.npz")
            path.write_bytes(content)

    def test_a_damaged_newest_is_refused_and_the_printed_command_goes_on(self):
        damaged = self.checkpoint
        shard = next((damaged / "model").glob("*.safetensors"))
        content = bytearray(shard.read_bytes())
        content[-1] ^= 1
        shard.write_bytes(content)
        self.train_refused("--resume", damaged.parent / "step-00000002", code=USAGE, says="--set-aside", may_change=["run/.lock"])
        text = self.train_refused("--steps", 6, says=[shard.name, "chunk 0", "step-00000002"], may_change=["run/.lock"])
        (printed,) = re.findall(r"train (--resume \S+)", text)
        done = self.train("--steps", 6, *printed.split())
        for said in (shard.name, "set aside as", "at step 2"):
            self.assertIn(said, done.stderr)
        self.assertFalse(damaged.exists())
        (aside,) = damaged.parent.glob("aside-step-00000004-*")
        self.assertEqual((aside / "model" / shard.name).read_bytes(), bytes(content))
        self.succeeds(CKPT, "verify", "run")
        self.train("--steps", 7)

    def test_resume_good_where_all_are_damaged(self):
        for manifest in (self.folder / "run" / "checkpoints").glob("step-*/manifest.json"):
            manifest.unlink()
        self.train_refused("--resume", "good", says=["no good checkpoint", "--out"], may_change=["run/.lock"])

    def edited(self, edit):
        """Changes the newest checkpoint's manifest and gives it the digest of what it says then."""
        path = self.checkpoint / "manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["xxh3_128"]
        edit(manifest)
        path.write_text(json.dumps(manifest, indent=2)[:-2] + ',\n  "xxh3_128": ""\n}\n')
        self.succeeds(PEER, "seal", path)

    def test_manifest_of_a_later_version(self):
        self.edited(lambda manifest: manifest.update(version=3))
        self.readers(says=["version 3", "1 to 2"])
        for start in ("auto", "good"):
            self.train_refused("--resume", start, says="version 3", may_change=["run/.lock"])

    def test_manifest_with_rows_that_fit_no_folder(self):
        ema = {"kind": "ema", "trainable": False}
        for rows, says in (([ema | {"profile": "../x"}], "../x"), ([ema], "'profile'"), ([ema | {"profile": ""}], "'profile'"),
                           ([{"kind": "average"}], "no kind of state"),
                           ([ema | {"profile": "slow"}] * 2, ["ema-slow/0.weight", "twice"]),
                           ([{}], ["0.weight", "twice"])):
            with self.subTest(rows=rows):
                path = self.checkpoint / "manifest.json"
                before = path.read_bytes()

                def add(manifest):
                    table = manifest["program"]["table"]
                    first = next(row for row in table if row["name"] == "0.weight")
                    table += [first | row for row in rows]
                self.edited(add)
                self.readers(says=says)
                path.write_bytes(before)

    def test_manifest_with_a_state_whose_file_is_missing(self):
        def add(manifest):
            table = manifest["program"]["table"]
            table.append(table[0] | {"kind": "ema", "profile": "slow", "trainable": False})
        self.edited(add)
        self.readers(says="ema-slow/ has no tensor")

    def test_manifest_with_members_that_are_not_known(self):
        def add(manifest):
            for item in (manifest, manifest["program"], manifest["program"]["table"][0], manifest["files"][0]):
                item["later"] = {"a": [1]}
        self.edited(add)
        self.succeeds(CKPT, "verify", self.checkpoint)
        self.train("--steps", 6)

    def test_chunk_list_that_belongs_to_another_file(self):
        def swap(manifest):
            first, second = (file for file in manifest["files"] if "chunks" in file)
            first["chunks"], second["chunks"] = second["chunks"], first["chunks"]
        self.edited(swap)
        self.readers(says="does not lie beside it")

    def test_manifest_of_another_checkpoint(self):
        older = min((self.folder / "run" / "checkpoints").glob("step-*"))
        shutil.copy(older / "manifest.json", self.checkpoint / "manifest.json")
        self.refused(BAD_INPUT, self.job, "eval", "--ckpt", self.checkpoint, "--data", "data.npz")

    def test_manifest_that_leaves_its_folder(self):
        manifest = self.checkpoint / "manifest.json"
        text = manifest.read_text()
        name = next((self.checkpoint / "model").glob("*.safetensors")).name
        self.assertIn(name, text)
        manifest.write_text(text.replace(f"model/{name}", f"../../../{name}"))
        self.refused(BAD_INPUT, self.job, "eval", "--ckpt", self.checkpoint, "--data", "data.npz")

    def test_manifest_that_is_other_json(self):
        for text in ("{}", "[]", "null", "[" * 100000, '{"format": 99}', '{"step": 1e400}', "\xff"):
            with self.subTest(text=text[:20]):
                (self.checkpoint / "manifest.json").write_text(text, encoding="latin-1")
                self.readers(says="manifest.json")


class InTheWay(ErrorTest):
    """What a later save would find, preflight finds before the first step."""

    def test_file_at_the_name_of_a_later_step(self):
        place = self.folder / "run" / "checkpoints" / "step-00000200"
        place.parent.mkdir(parents=True)
        place.write_text("mine")
        self.train_refused(code=ENVIRONMENT, says=["step-00000200", "step 200", "move it away"], may_change=["run/.lock"])

    def test_set_aside_without_a_path(self):
        self.train_refused("--set-aside", code=USAGE, says=["--resume PATH", "auto"])


class Mismatch(ErrorTest):
    """A sound checkpoint of something else."""

    def other(self, *options, **source):
        job = compiled_job(*options, **source)
        self.succeeds(job, "train", "--out", "other", "--threads", 1, "--steps", 2)
        return max((self.folder / "other" / "checkpoints").glob("step-*"))

    def test_other_optimizer(self):
        checkpoint = self.other("--set", "optimizer.kind=sgd", "--set", "optimizer.momentum=0.9")
        self.train_refused("--resume", checkpoint, says=["sgd", "adam"], lines=20)
        self.assertFalse((self.folder / "run" / "checkpoints").exists() and any(
            (self.folder / "run" / "checkpoints").glob("step-*")))

    def test_other_optimizer_evaluates(self):
        checkpoint = self.other("--set", "optimizer.kind=sgd", "--set", "optimizer.momentum=0.9")
        done = self.run_tool(self.job, "eval", "--ckpt", checkpoint, "--data", "data.npz")
        self.assertIn(done.returncode, (0, BAD_INPUT), done.stderr)

    def test_other_names(self):
        names = self.folder / "names.toml"
        names.write_text('["0.weight"]\nname = "first.weight"\n')
        # An export that does not list the names of the source.
        checkpoint = self.other("--names", names, model=MODEL.with_name("legacy-train.onnx"))
        self.train_refused("--resume", checkpoint, says=["0.weight", "first.weight"], lines=20)
        self.refused(BAD_INPUT, self.job, "eval", "--ckpt", checkpoint, "--data", "data.npz",
                     says=["0.weight", "first.weight"], lines=20)

    def test_resume_in_a_folder_with_checkpoints(self):
        self.train("--steps", 4)
        self.train_refused("--resume", "never", code=USAGE, says=["--resume never", "--out"], may_change=["run/.lock"])

    def test_resume_of_an_older_step(self):
        self.train("--steps", 2, "--set", "checkpoint.keep=0")
        first = self.checkpoint
        self.train("--steps", 4, "--set", "checkpoint.keep=0")
        self.train_refused("--resume", first, code=USAGE, says=["step 4", "--out", "--set-aside"], may_change=["run/.lock"])
        self.train("--steps", 3, "--resume", first, "--set-aside")
        self.assertEqual([path.name for path in sorted(first.parent.glob("step-*"))], ["step-00000002", "step-00000003"])
        self.assertEqual(len(list(first.parent.glob("aside-step-00000004-*"))), 1)

    def test_resume_of_nothing(self):
        self.train_refused("--resume", "nowhere", says="nowhere")

    def test_steps_below_the_resumed_step(self):
        self.train("--steps", 4)
        before = tree(self.checkpoint)
        done = self.train("--steps", 2)
        self.assertIn("step 4", done.stderr)
        self.assertEqual(tree(self.checkpoint), before)


class Init(ErrorTest):
    """--init W.safetensors"""

    def bad(self, says, *options, **changes):
        arrays = {name: np.zeros(shape, np.float32) for name, shape in WEIGHTS.items()} | {
            name.replace("__", "."): value for name, value in changes.items()}
        write_safetensors(self.folder / "w.safetensors", {k: v for k, v in arrays.items() if v is not None})
        return self.train_refused("--init", "w.safetensors", *options, says=says, lines=20)

    def test_fitting(self):
        write_safetensors(self.folder / "w.safetensors", {n: np.zeros(s, np.float32) for n, s in WEIGHTS.items()})
        self.train("--init", "w.safetensors")

    def test_missing_file(self):
        self.train_refused("--init", "none.safetensors", says="none.safetensors")

    def test_missing_name(self):
        self.bad(["2.bias"], **{"2__bias": None})

    def test_additional_name(self):
        self.bad(["9.bias"], **{"9__bias": np.zeros(3, np.float32)})

    def test_other_shape(self):
        self.bad(["2.bias", "[17]", "[16]"], **{"2__bias": np.zeros(17, np.float32)})

    def test_other_dtype(self):
        self.bad(["2.bias", "I64", "F32"], **{"2__bias": np.zeros(16, np.int64)})

    def test_wider_dtype(self):
        self.bad(["2.bias", "F64 [16]", "the program wants F32 [16]: --cast rounds it"], **{"2__bias": np.zeros(16)})
        done = self.train("--init", "w.safetensors", "--cast")
        self.assertIn("note: 1 tensor(s) of F64 were rounded to F32: --cast: '2.bias'", done.stderr)
        init = json.loads((self.checkpoint / "manifest.json").read_text())["init"]
        self.assertEqual(init["rounded"], ["2.bias"])

    def test_value_that_does_not_round(self):
        self.bad(["tensor '2.bias': element 3", "1e+300", "too large for F32"], "--cast",
                 **{"2__bias": np.where(np.arange(16) == 3, 1e300, 0)})

    def test_narrower_dtype_is_taken(self):
        arrays = {n: np.zeros(s, np.float16 if n == "2.bias" else np.float32) for n, s in WEIGHTS.items()}
        write_safetensors(self.folder / "w.safetensors", arrays)
        done = self.train("--init", "w.safetensors")
        self.assertIn("note: 1 tensor(s) of F16 became F32: no value changed: '2.bias'", done.stderr)

    def test_ignore(self):
        more = {"9__bias": np.zeros(3, np.float32)}
        self.bad(["+ 9.bias F32 [3] is unexpected", "--ignore"], **more)
        self.bad(["--ignore '8.*' matches no tensor of the file"], "--ignore", "8.*", "--ignore", "9.*", **more)
        self.bad(["--ignore leaves '0.bias' out, which this program needs"], "--ignore", "*.bias", **more)
        done = self.train("--init", "w.safetensors", "--ignore", "9.*")
        self.assertIn("note: 1 tensor(s) of the file were ignored: --ignore: '9.bias'", done.stderr)
        init = json.loads((self.checkpoint / "manifest.json").read_text())["init"]
        self.assertEqual(init["ignored"], ["9.bias"])

    def test_ignore_and_cast_without_init(self):
        for option in (("--ignore", "a"), ("--cast",)):
            self.train_refused(*option, code=USAGE, says="--fresh, --map, --ignore and --cast belong to --init")

    def test_pickle(self):
        for name in ("w.pt", "pytorch_model.bin", "w.pth"):
            (self.folder / name).write_bytes(b"any bytes")
            self.train_refused("--init", name, says=[f"'{name}' is a pickle", "python3 -c", "weights_only=True"])
        (self.folder / "dcp").mkdir()
        (self.folder / "dcp" / "__0_0.distcp").write_bytes(b"PK")
        self.train_refused("--init", "dcp", says=["'dcp' holds a distributed checkpoint", "dcp_to_torch_save"])

    def test_fresh_that_matches_nothing(self):
        self.bad("head", "--fresh", "head.*")

    def test_map_of_a_name_that_is_not_there(self):
        self.bad("head.bias", "--map", "head.bias=2.bias")

    def test_map_without_init(self):
        self.train_refused("--map", "a=b", code=USAGE, says="--init")

    def test_headers_that_lie(self):
        def entry(**changes):
            return {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]} | changes
        headers = [{"0.bias": entry(data_offsets=[0, 1 << 40])}, {"0.bias": entry(data_offsets=[64, 0])},
                   {"0.bias": entry(shape=[1 << 62, 8])}, {"0.bias": entry(shape=[-16])}, {"0.bias": entry(dtype="F99")},
                   {"0.bias": 3}, [], {"0.bias": entry(), "2.bias": entry()}]
        for header in headers:
            with self.subTest(header=header):
                text = json.dumps(header).encode()
                (self.folder / "w.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
                self.train_refused("--init", "w.safetensors", says="w.safetensors", lines=20)
        for length in (0, 1 << 40, (1 << 64) - 1):
            with self.subTest(length=length):
                (self.folder / "w.safetensors").write_bytes(struct.pack("<Q", length) + bytes(64))
                self.train_refused("--init", "w.safetensors", says="w.safetensors")


class Import(ErrorTest):
    """titan-ckpt import"""

    def setUp(self):
        super().setUp()
        write_safetensors(self.folder / "w.safetensors", {n: np.ones(s, np.float32) for n, s in WEIGHTS.items()})

    def import_refused(self, code, *arguments, says, lines=1, weights="w.safetensors"):
        self.refused(code, CKPT, "import", weights, "-o", "run", *arguments, says=says, lines=lines)

    def test_fitting(self):
        self.succeeds(CKPT, "import", "w.safetensors", "-o", "run", "--job", self.job)
        done = self.train("--steps", 2)
        self.assertIn("resumed from run/checkpoints/step-00000000 at step 0", done.stderr)
        self.assertNotIn("differs", done.stderr)
        self.succeeds(CKPT, "import", "w.safetensors", "-o", "other", "--like", self.checkpoint)
        self.succeeds(CKPT, "verify", "other")
        self.import_refused(USAGE, "--job", self.job, says=["'run' has checkpoints already", "step-00000002"])

    def test_no_target_or_two(self):
        self.import_refused(USAGE, says="--job")
        self.import_refused(USAGE, "--job", self.job, "--like", "run", says="--like")

    def test_job_that_is_none(self):
        stripped = self.folder / "stripped"
        shutil.copy(self.job, stripped)
        self.succeeds("strip", stripped)
        for job, says in (("data.npz", "it is no ELF file"), ("nowhere", "nowhere"), (CKPT, "no symbol titan_job_program_count"),
                          ("stripped", "it was stripped")):
            self.import_refused(BAD_INPUT, "--job", job, says=says)

    def test_like_what_is_no_checkpoint(self):
        self.import_refused(BAD_INPUT, "--like", "nowhere", says="'nowhere' is no checkpoint")

    def test_what_does_not_fit(self):
        arrays = {n: np.ones(s, np.float32) for n, s in WEIGHTS.items() if n != "2.bias"}
        write_safetensors(self.folder / "w.safetensors", arrays | {"9.bias": np.ones(3, np.float32)})
        self.import_refused(BAD_INPUT, "--job", self.job, says=["- 2.bias F32 [16] is missing", "+ 9.bias", "--ignore"], lines=20)
        self.import_refused(BAD_INPUT, "--job", self.job, "--ignore", "8.*", says="--ignore '8.*' matches no tensor")
        self.import_refused(USAGE, "--job", self.job, "--map", "9.bias", says="--map '9.bias' is not")

    def test_pickle(self):
        (self.folder / "w.pt").write_bytes(b"PK")
        self.import_refused(BAD_INPUT, "--job", self.job, weights="w.pt", says=["'w.pt' is a pickle", "python3 -c"])

    def test_nothing_there(self):
        self.import_refused(BAD_INPUT, "--job", self.job, weights="none", says="no such file or directory: 'none'")


class Tool(ErrorTest):
    """titan-ckpt on nonsense."""

    def test_no_command(self):
        self.refused(USAGE, CKPT)

    def test_unknown_command(self):
        self.refused(USAGE, CKPT, "destroy", "run", says="destroy")

    def test_nothing_there(self):
        for command in ("list", "inspect", "verify"):
            with self.subTest(command=command):
                self.refused(BAD_INPUT, CKPT, command, "nowhere", says="nowhere")

    def test_something_else(self):
        (self.folder / "folder").mkdir()
        for command in ("inspect", "verify"):
            for path in ("folder", "data.npz", "/dev/null"):
                with self.subTest(command=command, path=path):
                    self.refused(BAD_INPUT, CKPT, command, path, says=path)

    def test_diff_of_something_else(self):
        self.train("--steps", 2)
        self.refused(BAD_INPUT, CKPT, "diff", self.checkpoint, "data.npz", says="data.npz")

    def test_broken_pipe_and_full_output(self):
        self.train("--steps", 2)
        with open("/dev/full", "w") as full:
            import subprocess
            done = subprocess.run([CKPT, "inspect", self.checkpoint], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertRegex(done.stderr, re.compile(r"^(error: .*\n)?$"))


if __name__ == "__main__":
    unittest.main()
