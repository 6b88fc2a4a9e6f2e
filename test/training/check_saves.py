#!/usr/bin/env python3
"""Saves beside the steps of real jobs, on storage that is slow, full, hangs, or ends with the process.

    check_saves.py --tools build/dev/bin [--seed 1] [unittest's options]

The model is a GPT with dropout; SaveFaults.cpp, preloaded, is what the storage does.
"""
import concurrent.futures
import json
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time

import titan_job
from training_test import GPT_DROPOUT, REFERENCES, TrainingTest, main

SEED = 1
DATA = REFERENCES / "gpt-nano/data.npz"
KILLS = 200  # at numbered operations
RANDOM_KILLS = 20
LIMIT = 120  # seconds that a command may take
STEPS = 9  # of the runs that are killed


def resident_bytes(process):
    """Of a process; 0 where it has ended."""
    try:
        with open(f"/proc/{process}/status") as status:
            return next((1024 * int(line.split()[1]) for line in status if line.startswith("VmRSS:")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


class Saves(TrainingTest):
    def setUp(self):
        super().setUp()
        self.job = self.compile("job", "gpt-nano", "accumulate", models=GPT_DROPOUT)

    def words(self, out, steps, *settings, threads=1):
        words = [str(self.job), "train", "--out", str(self.scratch / out), "--data", str(DATA), "--steps", str(steps), "--threads", str(threads)]
        for setting in ("checkpoint.every=1", "checkpoint.keep=0", *settings):
            words += ["--set", setting]
        return words

    def start(self, words, **faults):
        faults = {f"TITAN_TEST_{name.upper()}": str(value) for name, value in faults.items()}
        preload = {"LD_PRELOAD": str(self.tools.parent / "test/libtitan_save_faults.so")} if faults else {}
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | preload | faults)

    def run_job(self, words, **faults):
        """Exit code and stderr."""
        process = self.start(words, **faults)
        err = process.communicate(timeout=LIMIT)[1]
        return process.returncode, err

    def rows(self, out):
        return [json.loads(line) for line in (self.scratch / out / "metrics.jsonl").read_text().splitlines()]

    def saves(self, out):
        return [row for row in self.rows(out) if "stall" in row]

    def wait_for(self, found, process):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and process.poll() is None and not found():
            time.sleep(0.001)

    def tensors(self, out, step):
        """{folder/name: bytes} of a checkpoint."""
        folder = self.scratch / out / "checkpoints" / f"step-{step:08d}"
        return {f"{part}/{name}": tensor.tobytes() for part in ("model", "optimizer")
                for name, tensor in titan_job.read_safetensors(folder / part).items()}

    def committed(self, out):
        return sorted(int(path.name[5:]) for path in (self.scratch / out / "checkpoints").glob("step-*"))

    def attempts(self, out):
        return list((self.scratch / out / "checkpoints").glob(".*"))

    def assert_equal_runs(self, out, alone, steps):
        self.assertEqual(titan_job.losses_of(self.scratch / out), titan_job.losses_of(self.scratch / alone))
        self.assertEqual(self.tensors(out, steps), self.tensors(alone, steps))


class Storage(Saves):
    def test_a_slow_disk_does_not_hold_up_what_has_a_copy(self):
        """Each write takes 20 ms more: with a copy the run waits for none of them, without one the next update does."""
        code, err = self.run_job(self.words("alone", 8, "checkpoint.async=false"))
        self.assertEqual(code, 0, err)
        stalls = {}
        for staging in ("full", "none"):
            # A save each fourth step, and the steps go on meanwhile.
            words = self.words(staging, 8, f"checkpoint.staging={staging}", "checkpoint.every=4")
            code, err = self.run_job(words, write_ms=20)
            self.assertEqual(code, 0, err)
            self.assertEqual(self.tensors(staging, 4), self.tensors("alone", 4))
            self.assertEqual(self.tensors(staging, 8), self.tensors("alone", 8))
            stalls[staging] = self.saves(staging)[0]["stall"]
            self.assertGreater(self.saves(staging)[0]["write"], 0.1)
        # Between the first tensor that is read and the last there are the writes of a whole file and its list.
        self.assertGreater(stalls["none"], 0.04)
        self.assertLess(stalls["full"], stalls["none"])

    def test_each_of_many_slow_saves_is_the_state_of_its_step(self):
        """Saves at each step that take longer than one, on two threads: whatever is copied, and never are two under way."""
        steps = 6
        code, err = self.run_job(self.words("alone", steps, "checkpoint.async=false"))
        self.assertEqual(code, 0, err)
        for staging in ("full", "none"):
            process = self.start(self.words(staging, steps, f"checkpoint.staging={staging}", threads=2), write_ms=10)
            most = 0
            while process.poll() is None:
                most = max(most, sum(path.name.startswith(".attempt-step-") for path in self.attempts(staging)))
                time.sleep(0.001)
            self.assertEqual(process.returncode, 0, process.communicate()[1])
            self.assertEqual(most, 1)
            self.assertEqual(self.committed(staging), [*range(1, steps + 1)])
            for step in range(1, steps + 1):
                self.assertEqual(self.tensors(staging, step), self.tensors("alone", step))
            # From the second one on each waits for the six writes of the one before.
            self.assertGreater(min(row["stall"] for row in self.saves(staging)[1:]), 0.02)

    def test_a_wait_for_a_save_sleeps(self):
        """On one CPU, where a thread that waits and computes would take it from the one that saves."""
        for staging in ("full", "none"):
            one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            code, err = self.run_job([*one, *self.words(staging, 6, f"checkpoint.staging={staging}")], write_ms=60)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual(code, 0, err)
            self.assertEqual(self.committed(staging), [*range(1, 7)])
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            self.assertLess(used, 0.8 * sum(row["stall"] for row in self.saves(staging)))

    def test_many_saves_take_no_more_memory_than_few(self):
        process = self.start(self.words("many", 60, "checkpoint.keep=1"))
        few = many = 0
        while process.poll() is None:
            committed, resident = max(self.committed("many"), default=0), resident_bytes(process.pid)
            if 5 <= committed <= 15:
                few = max(few, resident)
            many = max(many, resident if committed > 15 else 0)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.saves("many")), 60)
        self.assertTrue(few and many)
        self.assertLess(many - few, 1 << 19)

    def test_a_full_disk_ends_the_run_with_a_command_that_works(self):
        save = sum(path.stat().st_size for path in self.checkpoint_files())
        out = "full disk"
        code, err = self.run_job(self.words(out, 40), room=round(4.5 * save))
        self.assertEqual(code, 5, err)
        self.assertIn("No space left on device", err)
        last = self.committed(out)[-1]
        steps = len(titan_job.losses_of(self.scratch / out))
        self.assertLess(steps, 40)
        self.assertIn(f"the run ends after step {steps}, and the newest checkpoint is ", err)
        self.assertIn(f"step-{last:08d}; to go on: ", err)
        self.assertEqual(self.attempts(out), [])
        command = err.strip().split("; to go on: ")[1]
        self.assertEqual(subprocess.run(command, shell=True, capture_output=True, timeout=LIMIT).returncode, 0)
        self.assertEqual(self.run_job(self.words("alone", 40))[0], 0)
        self.assert_equal_runs(out, "alone", 40)

    def test_a_failure_is_a_note_where_the_recipe_says_so(self):
        words = self.words("continued", 8, "checkpoint.on_failure=continue")
        self.assertEqual(self.run_job(self.words("alone", 8))[0], 0)
        code, err = self.run_job(words, fail=25)  # a save has six: two files, their lists, the index, the manifest
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"note: the checkpoint of step \d was not saved: .*No space left on device")
        failures = [row for row in self.rows("continued") if "save_failures" in row]
        self.assertEqual([row["save_failures"] for row in failures], [1])
        self.assertEqual(self.committed("continued"), sorted({*range(1, 9)} - {failures[0]["step"]}))
        self.assert_equal_runs("continued", "alone", 8)

    def test_what_the_kernel_takes_in_parts_is_saved_whole(self):
        """Each write takes a half, and before it, as before each sync, a signal comes."""
        self.assertEqual(self.run_job(self.words("alone", 3, "checkpoint.async=false"))[0], 0)
        code, err = self.run_job(self.words("short", 3), short=1)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.committed("short"), [1, 2, 3])
        for step in (1, 2, 3):
            self.assertEqual(self.tensors("short", step), self.tensors("alone", step))
        done = subprocess.run([self.tools / "titan-ckpt", "verify", self.scratch / "short"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_save_may_be_left_out_while_another_goes_on(self):
        code, err = self.run_job(self.words("skipping", 12, "checkpoint.when_busy=skip"), write_ms=30)
        self.assertEqual(code, 0, err)
        skipped = [row["step"] for row in self.rows("skipping") if "saves_skipped" in row]
        self.assertGreater(len(skipped), 0)
        self.assertIn(f"note: step {skipped[0]} is not saved: the save of step ", err)
        self.assertEqual(self.committed("skipping"), sorted({*range(1, 13)} - set(skipped)))
        self.assertIn(12, self.committed("skipping"))
        code, err = self.run_job(self.words("waiting", 4), write_ms=30)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.committed("waiting"), [1, 2, 3, 4])
        self.assertEqual(err.count("raise checkpoint.every, or set checkpoint.when_busy"), 1, err)

    def checkpoint_files(self):
        self.assertEqual(self.run_job(self.words("one", 1))[0], 0)
        return [path for path in (self.scratch / "one/checkpoints").rglob("*") if path.is_file()]

    def test_a_save_that_hangs_ends_the_run(self):
        """Also where the step waits for it, without a copy."""
        self.assertEqual(self.run_job(self.words("counted", 2), count=self.scratch / "count")[0], 0)
        operations = int((self.scratch / "count").read_text())
        for number, staging in enumerate(("full", "none")):
            words = self.words(f"hang-{staging}", 100000, f"checkpoint.staging={staging}", "checkpoint.timeout=1", "checkpoint.every=2")
            began = time.monotonic()
            code, err = self.run_job(words, hang=operations // 2 + 7 * number)
            self.assertEqual(code, 5, err)
            self.assertRegex(err, r"error: the checkpoint of step \d+ makes no progress: to \w+ '.*checkpoints.*' takes more than 1 s, "
                             r"checkpoint\.timeout; .*to go on: ")
            self.assertLess(time.monotonic() - began, 30)

    def test_list_beside_a_save_and_after_its_end(self):
        """A save that hangs: titan-ckpt list names its step and its process, and after kill -9 that this is dead."""
        self.assertEqual(self.run_job(self.words("counted", 2), count=self.scratch / "count")[0], 0)
        operations = int((self.scratch / "count").read_text())
        process = self.start(self.words("listed", 100000, "checkpoint.every=2"), hang=operations // 2 + 5)

        def saving():
            done = subprocess.run([self.tools / "titan-ckpt", "list", "--json", self.scratch / "listed"], capture_output=True, text=True)
            rows = json.loads(done.stdout) if done.returncode == 0 else []
            return [row for row in rows if row["state"] == "saving"]

        held = []
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and process.poll() is None:
            rows = saving()
            # The one that hangs is there twice in a row.
            if rows and held == rows:
                break
            held = rows
            time.sleep(0.2)
        (row,) = held
        self.assertTrue(row["holder_alive"])
        self.assertIn(f"pid {process.pid} on ", row["holder"])
        self.assertGreater(row["total"], 0)
        self.assertLessEqual(row["bytes"], row["total"] * 1.1)
        process.kill()
        process.communicate()
        (dead,) = saving()
        self.assertEqual(dead, row | {"holder_alive": False})
        code, err = self.run_job(self.words("listed", max(self.committed("listed"), default=0) + 2))
        self.assertEqual(code, 0, err)
        self.assertEqual(saving(), [])

    def test_signals_while_a_save_goes_on(self):
        """SIGTERM: the save is awaited and the state of now saved. Another SIGINT ends the run at once, and the next start cleans up."""
        for signals in ((signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)):
            out = f"signals-{len(signals)}"
            process = self.start(self.words(out, 100000, "checkpoint.every=3"), write_ms=30)
            self.wait_for(lambda: self.committed(out) and self.attempts(out), process)
            for number in signals:
                process.send_signal(number)
                time.sleep(0.05)
            err = process.communicate(timeout=LIMIT)[1]
            if len(signals) == 1:
                self.assertEqual(process.returncode, 0, err)
                self.assertIn("stopped by SIGTERM", err)
                self.assertEqual(self.attempts(out), [])
                self.assertEqual(self.committed(out)[-1], len(titan_job.losses_of(self.scratch / out)))
            else:
                self.assertEqual(process.returncode, 128 + signal.SIGINT, err)
                self.assertNotEqual(self.attempts(out), [])
            steps = max(self.committed(out)) + 2
            code, err = self.run_job(self.words(out, steps))
            self.assertEqual(code, 0, err)
            self.assertEqual(self.attempts(out), [])


class Kills(Saves):
    """A run that is killed goes on to the bits of one that was left alone."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.run_job(self.words("alone", STEPS))[0], 0)

    def resume(self, out, settings):
        code, err = self.run_job(self.words(out, STEPS, *settings))
        self.assertEqual(code, 0, err)
        self.assertEqual(self.attempts(out), [])
        self.assert_equal_runs(out, "alone", STEPS)
        shutil.rmtree(self.scratch / out)

    def test_at_numbered_operations(self):
        self.assertEqual(self.run_job(self.words("counted", STEPS), count=self.scratch / "count")[0], 0)
        operations = int((self.scratch / "count").read_text())
        draw = random.Random(SEED)
        moments = sorted(draw.sample(range(1, operations + 1), min(KILLS, operations)))
        print(f"--seed {SEED}: {len(moments)} of {operations} operations", file=sys.stderr)

        def kill_and_resume(moment):
            # Whether steps wait, and what is copied, changes no operation.
            settings = (f"checkpoint.staging={('full', 'none')[moment % 2]}",)
            code, err = self.run_job(self.words(f"killed-{moment}", STEPS, *settings), kill_at=moment)
            self.assertIn(code, (-signal.SIGKILL, 0), err)
            self.resume(f"killed-{moment}", settings)
            return code != 0

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            killed = sum(pool.map(kill_and_resume, moments))
        self.assertGreater(killed, 0.95 * len(moments))

    def test_at_random_times(self):
        draw = random.Random(SEED)
        killed = 0
        for number in range(RANDOM_KILLS):
            out = f"random-{number}"
            process = self.start(self.words(out, STEPS, threads=1 + number % 2))
            step = draw.randint(1, STEPS - 1)
            self.wait_for(lambda: (self.scratch / out / "metrics.jsonl").exists() and
                          len(titan_job.losses_of(self.scratch / out)) >= step, process)
            time.sleep(draw.uniform(0, 0.02))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
            self.resume(out, ())
        self.assertGreater(killed, RANDOM_KILLS // 2)


if __name__ == "__main__":
    if "--seed" in sys.argv:
        at = sys.argv.index("--seed")
        SEED = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    main(__doc__)
