"""Disks that are full or read-only, folders that are in use, and outputs that cannot be written."""
import errno
import os
import shutil
import subprocess
import time
import unittest
from pathlib import Path

from support import (BAD_INPUT, CKPT, COMPILE, ENVIRONMENT, MODEL, OPT, RUN, RUN_FAILED, TOOLS, USAGE, ErrorTest, limited_file_size,
                     small_disk, tree, write_data)

KEEP_ALL = ("--set", "checkpoint.keep=0", "--set", "checkpoint.every=1")


class CompileOutput(ErrorTest):
    """The old job stays, whole, whenever the new one cannot be written."""

    def setUp(self):
        super().setUp()
        self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "-o", "job")

    def test_folder_that_is_not_there(self):
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "none/job", says=["none/job", "No such file"])

    def test_below_a_file(self):
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "job/job", says="job/job")

    def test_any_name(self):
        """LLVM takes a % in a path for a place to fill in; the longest names leave no room for an ending."""
        for name in ("a%b/job", "%%%%%%", "it's a \"job\"", "größe", "n" * 255):
            with self.subTest(name=name):
                (self.folder / name).parent.mkdir(exist_ok=True)
                self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "-o", name)
                self.succeeds(self.folder / name, "train", "--out", "a%b.run", "--steps", 2)
                self.succeeds(COMPILE, MODEL, "--emit=import", "--save-temps", "a%b/stages", "-o", name)
                self.assertIn("titan.state", (self.folder / name).read_text())
                shutil.rmtree(self.folder / "a%b.run")
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "n" * 256, says=["n" * 256, "File name too long"])

    def test_folder(self):
        (self.folder / "folder").mkdir()
        for flag in ("--emit=import", "--weights=embed"):
            self.refused(ENVIRONMENT, COMPILE, MODEL, flag, "-o", "folder", says=["folder cannot be written", "directory"])

    def test_devices(self):
        """A job does not take the place of a pipe or a device; text goes into it."""
        os.mkfifo(self.folder / "pipe")
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "pipe", says=["pipe cannot be written", "not a regular file"])
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "/dev/null", says="/dev/null cannot be written")
        self.assertTrue(Path("/dev/null").is_char_device())
        self.assertIn("titan.state", self.succeeds(COMPILE, MODEL, "--emit=import", "-o", "/dev/stdout").stdout)
        self.assertTrue(Path("/dev/stdout").is_symlink())

    def test_too_large_for_the_disk(self):
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "job", says="job", preexec_fn=limited_file_size(1 << 20))
        self.succeeds("./job", "info")

    def test_files_of_others_stay(self):
        """What a link that fails removes is its own, also beside a process of a similar number."""
        def others():
            limited_file_size(1 << 20)()
            open(f"job.unfinished-{os.getpid()}7", "w").close()  # the compiler gets this process's number
        self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "job", says="job", preexec_fn=others, may_change=["job.unf"])
        self.assertEqual(len(list(self.folder.glob("job.unfinished-*"))), 1)

    def test_full_disk(self):
        with small_disk(self.folder / "disk", 1024) as disk:
            self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "disk/job", says=["disk/job", "No space"])
            self.assertEqual(list(disk.iterdir()), [])

    def test_read_only_disk(self):
        with small_disk(self.folder / "disk", 8192) as disk:
            shutil.copy(self.folder / "job", disk / "job")
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            self.refused(ENVIRONMENT, COMPILE, MODEL, "-o", "disk/job", says=["disk/job", "Read-only"])

    def test_cache_on_a_full_or_read_only_disk(self):
        """A cache is no condition: what it cannot keep is a note."""
        def compiled(says):
            done = self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "--cache", "disk/cache", "-o", "cached")
            self.assertIn(says, done.stderr)
            self.assertEqual((self.folder / "cached").read_bytes(), (self.folder / "job").read_bytes())
        with small_disk(self.folder / "disk", 32) as disk:
            compiled("note: --cache disk/cache cannot be written: No space left on device")
            self.assertEqual(list(disk.glob("cache/titan-code-cache.*")), [])
        with small_disk(self.folder / "disk", 8192) as disk:
            self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "--set", "optimizer.eps=1e-5", "--cache", "disk/cache", "-o", "x")
            kept = tree(disk)
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            compiled("note: --cache disk/cache cannot be written: Read-only file system")
            self.assertEqual(tree(disk), kept)

    def test_stage_to_a_full_disk(self):
        self.refused(ENVIRONMENT, COMPILE, MODEL, "--emit=import", "-o", "none/out.mlir", says="none/out.mlir")
        with open("/dev/full", "w") as full:
            done = subprocess.run([COMPILE, MODEL, "--emit=import"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (ENVIRONMENT, 1), done.stderr)

    def test_running_job_is_replaced_not_overwritten(self):
        """A job that runs keeps its own code when the file is compiled again."""
        running = subprocess.Popen([self.folder / "job", "train", "--steps", "1000000", "--out", self.folder / "run"],
                                   cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.succeeds(COMPILE, MODEL, "--recipe", "recipe.toml", "-o", "job")
        finally:
            running.terminate()
        self.assertEqual(running.wait(timeout=30), 0)


class RunFolder(ErrorTest):
    def test_below_a_file(self):
        self.refused(ENVIRONMENT, self.job, "train", "--out", "data.npz/run", says="data.npz")

    def test_file(self):
        self.refused(ENVIRONMENT, self.job, "train", "--out", "data.npz", says="data.npz")

    def test_read_only_disk(self):
        with small_disk(self.folder / "disk", 8192, ",ro"):
            self.refused(ENVIRONMENT, self.job, "train", "--out", "disk/run", says=["disk/run", "Read-only"])

    def test_disk_that_is_full_from_the_start(self):
        with small_disk(self.folder / "disk", 16):
            self.refused(ENVIRONMENT, self.job, "train", "--out", "disk/run", says="disk/run", may_change=["disk"])

    def test_disk_that_fills_up(self):
        with small_disk(self.folder / "disk", 4096):
            self.succeeds(self.job, "train", "--out", "disk/run", "--threads", 1, "--steps", 2)
            first = self.folder / "disk" / "run" / "checkpoints" / "step-00000002"
            before = tree(first)
            (self.folder / "disk" / "ballast").write_bytes(bytes(3900 << 10))
            self.refused_any((ENVIRONMENT, RUN_FAILED), "--out", "disk/run", "--steps", 200, *KEEP_ALL)
            self.assertEqual(tree(first), before)
            (self.folder / "disk" / "ballast").unlink()
            self.succeeds(self.job, "train", "--out", "disk/run", "--threads", 1, "--steps", 3)

    def refused_any(self, codes, *arguments):
        done = self.run_tool(self.job, "train", "--threads", 1, *arguments)
        self.assertIn(done.returncode, codes, done.stderr[-2000:])
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr[-2000:])

    def test_file_size_limit(self):
        self.train("--steps", 2)
        before = tree(self.checkpoint)
        done = self.run_tool(self.job, "train", "--out", "run", "--threads", 1, "--steps", 4,
                             preexec_fn=limited_file_size(2000))
        self.assertIn(done.returncode, (ENVIRONMENT, RUN_FAILED), done.stderr[-2000:])
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr[-2000:])
        self.assertEqual(tree(self.checkpoint), before)
        self.train("--steps", 4)

    def test_file_size_limit_in_the_middle_of_a_run(self):
        """Metrics are what grows: the run ends with their path, and what was saved stays."""
        done = self.run_tool(self.job, "train", "--out", "run", "--threads", 1, "--steps", 400, *KEEP_ALL,
                             "--set", "checkpoint.every=20", preexec_fn=limited_file_size(16 << 10))
        self.assertIn(done.returncode, (ENVIRONMENT, RUN_FAILED), done.stderr[-2000:])
        self.assertRegex(done.stderr, r"error: .*run/.*: File too large")
        self.succeeds(CKPT, "verify", self.checkpoint)
        self.train("--steps", 400)

    def test_memory_that_copies_for_saves_do_not_have(self):
        """What the system says is available, in a namespace of the job's own."""
        (self.folder / "meminfo").write_text("MemAvailable: 4 kB\n")
        little = ["unshare", "-m", "sh", "-c", 'mount --bind meminfo /proc/meminfo && exec "$0" "$@"']
        if self.run_tool(*little, "true").returncode != 0:
            self.skipTest("no permission to mount")
        train = [*little, self.job, "train", "--out", "run", "--threads", 1, *KEEP_ALL]
        self.refused(ENVIRONMENT, *train, "--set", "checkpoint.staging=full",
                     says=['checkpoint.staging = "full": a copy of the state takes ', ' and 4.0 KiB are available: '
                           'free some memory, or leave it to "auto"'])
        said = self.succeeds(*train).stderr
        self.assertIn("4.0 KiB are available: what is not copied is read before the next update", said)
        self.assertIn(", and the next update waits for the rest", said)
        self.succeeds(self.job, "train", "--out", "alone", "--threads", 1, *KEEP_ALL)
        for step in range(1, 5):
            folders = [self.folder / run / "checkpoints" / f"step-{step:08d}" for run in ("run", "alone")]
            for name in ("model", "optimizer"):
                bytes_ = [next((folder / name).glob("*.safetensors")).read_bytes() for folder in folders]
                self.assertEqual(*bytes_)

    def test_closed_streams(self):
        """What is closed does not get the number of a file of the run, which messages would go into."""
        for closed in ("<&- >&- 2>&-", "2>&-", "<&-", ">&-", "2>/dev/full"):
            with self.subTest(closed=closed):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                self.succeeds("sh", "-c", f'exec "$@" {closed}', "sh", self.job, "train", "--out", "run", "--threads", 1)
                self.assertRegex((self.folder / "run" / ".lock").read_text(), r"\Apid \d+ on [^\n]*\Z")
                self.succeeds(CKPT, "verify", self.checkpoint)
                for tool, code in (((COMPILE, MODEL, "--recipe", "recipe.toml", "-o", "closed"), 0), ((COMPILE, "none.onnx"), 1),
                                   ((OPT, "--version"), 0), ((CKPT, "list", "run"), 0), ((RUN, self.job, "plan"), 0),
                                   ((RUN, "--eager", "none.onnx", "train"), 1), ((RUN, "none"), 3)):
                    done = self.run_tool("sh", "-c", f'exec "$@" {closed}', "sh", *tool)
                    self.assertEqual(done.returncode, code, f"{tool}: {done.stderr}")

    def test_second_process(self):
        first = subprocess.Popen([self.job, "train", "--steps", "1000000", "--out", "run"], cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not (self.folder / "run" / "metrics.jsonl").exists():
                time.sleep(0.02)
            self.train_refused(code=ENVIRONMENT, says=["run", str(first.pid)], may_change=["run/metrics", "run/events"])
        finally:
            first.terminate()
        self.assertEqual(first.wait(timeout=30), 0)

    def test_metrics_that_are_a_folder(self):
        (self.folder / "run" / "metrics.jsonl").mkdir(parents=True)
        self.train_refused(code=ENVIRONMENT, says="metrics.jsonl")


class StorageThatDoesNotWork(ErrorTest):
    """What the first save would meet is met before the first step; SaveFaults.cpp, preloaded, is the storage."""
    FAULTS = TOOLS.parent / "test" / "libtitan_save_faults.so"

    def refused_before_step_1(self, says, **faults):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        preload = {"LD_PRELOAD": str(self.FAULTS)} | {f"TITAN_TEST_{name.upper()}": str(value) for name, value in faults.items()}
        self.train_refused("--set", "checkpoint.every=1", code=ENVIRONMENT, says=says, may_change=["run"], env=os.environ | preload)
        self.assertFalse((self.folder / "run" / "metrics.jsonl").exists())
        self.assertEqual([*(self.folder / "run").glob("checkpoints/[!.]*")], [])

    def test_calls_that_are_refused(self):
        for call, number, verb in (("write", errno.EDQUOT, "write"), ("write", errno.EIO, "write"), ("fdatasync", errno.EIO, "sync"),
                                   ("fsync", errno.EIO, "sync directory"), ("fsync", errno.EINVAL, "sync directory"),
                                   ("rename", errno.EXDEV, "rename"), ("rename", errno.EPERM, "rename"), ("mkdir", errno.EACCES, "make directory"),
                                   ("unlink", errno.EPERM, "remove"), ("flock", errno.ENOLCK, "lock"), ("flock", errno.EOPNOTSUPP, "lock")):
            with self.subTest(call=call, number=number):
                self.refused_before_step_1([f"cannot {verb} 'run/", os.strerror(number)], refuse=f"{call}:{number}")

    def test_bytes_that_read_back_otherwise(self):
        self.refused_before_step_1(["checkpoints cannot be saved: ", "this disk loses data"], alter=1)

    def test_quota_of_less_than_a_save(self):
        self.refused_before_step_1(["checkpoints cannot be saved: room for 3 more checkpoint(s) of ", "Disk quota exceeded (raise the quota, "],
                                   quota=10000)
        preload = {"LD_PRELOAD": str(self.FAULTS), "TITAN_TEST_QUOTA": "1000000"}
        self.train("--set", "checkpoint.every=1", env=os.environ | preload)


class PredictOutput(ErrorTest):
    def predict(self, *arguments, code, **options):
        return self.refused(code, self.job, "predict", "--data", "data.npz", *arguments, **options)

    def test_no_output(self):
        self.predict(code=USAGE, says="output")

    def test_folder(self):
        (self.folder / "out").mkdir()
        self.predict("-o", "out", code=ENVIRONMENT, says="out")

    def test_folder_that_is_not_there(self):
        self.predict("-o", "none/out.npz", code=ENVIRONMENT, says="none/out.npz")

    def test_full_disk(self):
        write_data(self.folder / "data.npz", samples=4000)
        with small_disk(self.folder / "disk", 16):
            self.predict("-o", "disk/out.npz", code=ENVIRONMENT, says=["disk/out.npz", "No space"])

    def test_old_predictions_stay(self):
        self.succeeds(self.job, "predict", "--data", "data.npz", "-o", "out.npz")
        self.predict("-o", "out.npz", code=ENVIRONMENT, says="out.npz", preexec_fn=limited_file_size(200))


class CommandLine(ErrorTest):
    """The job's and titan-run's own."""

    def usage(self, *arguments, says=()):
        return self.refused(USAGE, *arguments, says=says)

    def test_nothing(self):
        self.usage(self.job)

    def test_unknown_command(self):
        self.usage(self.job, "trian", says=["trian", "train"])

    def test_unknown_flag(self):
        self.usage(self.job, "train", "--epochs", 3, says="--epochs")

    def test_threads(self):
        for count in ("0", "-1", "10000", "two", "1e99", "99999999999999999999"):
            with self.subTest(count=count):
                self.usage(self.job, "train", "--threads", count, says="--threads")

    def test_steps(self):
        for count in ("0", "-1", "many", "99999999999999999999"):
            with self.subTest(count=count):
                done = self.run_tool(self.job, "train", "--out", "run", "--steps", count)
                self.assertIn(done.returncode, (BAD_INPUT, USAGE), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_unknown_gemm(self):
        self.usage(self.job, "train", "--gemm", "fast", says="fast")

    def test_full_output(self):
        for command in (("info",), ("info", "--json"), ("plan",), ("plan", "--json")):
            with self.subTest(command=command), open("/dev/full", "w") as full:
                done = subprocess.run([self.job, *command], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (ENVIRONMENT, 1), done.stderr)

    def test_titan_run(self):
        for arguments in ((), ("-n",), ("-n", "0", self.job), ("-n", "many", self.job), ("--fast", self.job)):
            with self.subTest(arguments=arguments):
                self.usage(RUN, *arguments)
        self.refused(ENVIRONMENT, RUN, "./none", "train", says="./none")
        self.refused(ENVIRONMENT, RUN, "recipe.toml", "train", says="recipe.toml")

    def test_eager(self):
        self.refused(BAD_INPUT, RUN, "--eager", "none.onnx", "train", says="none.onnx")
        self.refused(BAD_INPUT, RUN, "--eager", MODEL, "--recipe", "none.toml", "train", says="none.toml")
        self.usage(RUN, "--eager", MODEL, "--recipe", "recipe.toml", "trian")
        self.refused(BAD_INPUT, RUN, "--eager", MODEL, "--recipe", "recipe.toml", "train", "--data", "none.npz",
                     says="none.npz")
        self.refused(BAD_INPUT, RUN, "--eager", MODEL, "--recipe", "recipe.toml", "--set", "mesh.axes={ shard = 2 }", "--set", "batch.global=64", "train",
                     says="an eager run is one rank, mesh.axes has 2: set every axis to 1")

    def test_damaged_job(self):
        """Whatever is cut off or flipped in the program's table: no crash of ours without a word."""
        content = bytearray(self.job.read_bytes())
        at = content.rfind(b"TITANPRG", 0, content.rfind(b'"optimizer"'))
        self.assertGreater(at, 0)
        for position in range(at, at + 1000, 40):
            changed = bytearray(content)
            changed[position] ^= 0xFF
            path = self.folder / "damaged"
            path.write_bytes(changed)
            os.chmod(path, 0o755)
            done = self.run_tool(path, "info")
            self.assertIn(done.returncode, (0, BAD_INPUT, 4), f"{position - at}: {done.stderr}")


if __name__ == "__main__":
    unittest.main()
