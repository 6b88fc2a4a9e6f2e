#!/usr/bin/env python3
"""When a rank is lost or fails, all ranks are gone within seconds, the culprit is named once, and no checkpoint is harmed.

    check_failures.py --tools build/dev/bin [--seed 1] [unittest's options]
"""
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np

import ranks_test
from ranks_test import GONE, REFERENCES, is_alive, ranks_of, titan_job

SEED = 1


class Failures(ranks_test.RanksTest):
    def verify_all(self, out):
        for name in self.checkpoints(out):
            if name.startswith("step-"):
                titan_job.run([self.tools / "titan-ckpt", "verify", self.scratch / out / "checkpoints" / name])

    def lose(self, rank, number):
        """(stderr, pid) of a run on two ranks of which `rank` gets the signal `number` on its way."""
        job, data = self.mlp({"replicate": 2})
        process = self.start(2, job, "train", "--data", data, "--out", self.scratch / f"run-{rank}")
        self.wait_for_steps(process, f"run-{rank}", 10)
        pids = ranks_of(process)
        os.kill(pids[rank], number)
        code, _, err = self.finish(process, GONE)
        self.assertEqual(code, 5, err)
        self.assertEqual([pid for pid in pids.values() if is_alive(pid)], [])
        self.assertEqual(self.checkpoints(f"run-{rank}"), [])  # who saw it does not save
        return err, pids[rank]

    def test_a_killed_rank_is_named_with_its_step_and_who_waited(self):
        for rank in (1, 0):
            with self.subTest(rank=rank):
                err, pid = self.lose(rank, signal.SIGKILL)
                self.assert_told_once(err, f"rank {rank} (pid {pid}) was killed by signal 9 in step ", f"rank {1 - rank} waited at '")

    def test_a_rank_that_stands_still_is_named(self):
        # Its threads sleep with it, so that it publishes no beat.
        err, pid = self.lose(1, signal.SIGSTOP)
        self.assert_told_once(err, f"rank 1 (pid {pid})")

    def test_a_rank_that_leaves_early_is_named(self):
        job, data = self.mlp({"replicate": 2})
        script = self.wrapper(job, '[ "$TITAN_RANK" = 1 ] && exit 0')
        code, _, err = self.run_ranks(2, script, "train", "--data", data, "--out", self.scratch / "run")
        self.assertEqual(code, 5, err)
        self.assert_told_once(err, "rank 1", "left with exit code 0")

    def test_a_rank_lost_at_any_moment(self):
        # In the agreement, the load, a step, an evaluation, a save, the end.
        draw = random.Random(SEED)
        job, data = self.mlp({"replicate": 2})
        train = [job, "train", "--data", data, "--steps", 40, "--set", "checkpoint.every=4", "--set", "train.eval_every=3", "--set",
                 f"data.eval={data}"]
        began = time.monotonic()
        self.assertEqual(self.run_ranks(2, *train, "--out", self.scratch / "whole")[0], 0)
        whole, lost = time.monotonic() - began, 0
        for number in range(16):
            rank, sent = draw.randint(0, 1), draw.choice([signal.SIGKILL, signal.SIGSEGV])
            out = f"run-{number // 4}"  # a run is lost, and goes on, four times
            process = self.start(2, *train, "--out", self.scratch / out)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=draw.uniform(0, whole))
            pids = ranks_of(process) if process.poll() is None else {}
            if rank in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[rank], sent)
            code, _, err = self.finish(process, GONE)
            with self.subTest(number=number, rank=rank, signal=sent.name):
                self.assertIn(code, (0, 5), err)
                lost += code == 5
                if code == 5:
                    self.assert_told_once(err, f"rank {rank} (pid {pids[rank]}) was killed by signal {sent.value}")
                self.assertEqual([pid for pid in pids.values() if is_alive(pid)], [])
                if (self.scratch / out / "checkpoints").exists():
                    self.verify_all(out)
        self.assertGreater(lost, 4)

    def test_a_step_without_a_valid_target_is_skipped_by_all(self):
        data = self.scratch / "ignored.npz"
        np.savez(data, x=np.zeros((64, 1, 28, 28), np.uint8), targets=np.full(64, -100))
        said = []
        for ranks, axes in ((None, {}), (2, {"replicate": 2}), (3, {"shard": 3})):
            job, _ = self.mlp(axes, 48 if ranks == 3 else 64)
            code, _, err = self.run_ranks(ranks, job, "train", "--data", data, "--out", self.scratch / f"run-{ranks}",
                                          "--set", "train.non_finite_limit=2")
            self.assertEqual(code, 5, err)
            said += [line for line in err.splitlines() if line.startswith("error:")]
        self.assertIn("the updates of steps 1 to 2 were skipped", said[0])
        self.assertEqual(said, [said[0]] * 3)

    def test_no_rank_outlives_titan_run(self):
        job, data = self.mlp({"replicate": 2})
        process = self.start(2, job, "train", "--data", data, "--out", self.scratch / "run")
        self.wait_for_steps(process, "run", 5)
        pids = ranks_of(process)
        process.kill()
        process.communicate(timeout=GONE)
        self.wait_until_gone(pids.values())

    def test_killed_runs_go_on_from_what_they_saved(self):
        draw = random.Random(SEED)
        job, data = self.mlp({"replicate": 2})
        whole = self.train(2, job, data, "whole", "--steps", 300, "--set", "checkpoint.every=10")
        options = ["--steps", 300, "--set", "checkpoint.every=10"]
        for _ in range(4):
            steps = self.lines("run") + draw.randint(20, 60)
            process = self.start(2, job, "train", "--data", data, "--out", self.scratch / "run", *options)
            self.wait_for_steps(process, "run", steps)
            os.kill(ranks_of(process)[draw.randint(0, 1)], signal.SIGKILL)
            code, _, err = self.finish(process, GONE)
            self.assertEqual(code, 5, err)
            self.verify_all("run")
        self.assert_same(self.train(2, job, data, "run", *options), whole)

    def test_a_full_disk_at_rank_0_ends_all_and_leaves_the_last_checkpoint(self):
        job, data = self.mlp({"replicate": 2})
        process = self.start(2, job, "train", "--data", data, "--out", self.scratch / "run", "--set", "checkpoint.every=20")
        self.wait_for(process, (self.scratch / "run/checkpoints/step-00000020").exists)
        # Larger than the metrics, smaller than a checkpoint's files: the next save finds no room.
        resource.prlimit(ranks_of(process)[0], resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        code, _, err = self.finish(process)
        self.assertEqual(code, 5, err)
        self.assert_told_once(err, "the checkpoint of step ", " was not saved: ", "File too large")
        self.assertNotIn("rank 1", "\n".join(line for line in err.splitlines() if not line.startswith("note: ")))
        self.assertTrue(self.checkpoints("run"))
        self.verify_all("run")

    def test_a_bad_label_that_one_rank_reads_ends_all(self):
        # Labels of more than 256 MiB are checked when they are read. Sample 20 is in microbatch 1 of the first step, that of rank 1.
        samples = (256 << 20) // 8 + 64
        x = np.lib.format.open_memmap(self.scratch / "x.npy", "w+", np.float32, (samples, 12))
        targets = np.lib.format.open_memmap(self.scratch / "targets.npy", "w+", np.int64, (samples,))
        targets[20] = 77
        del x, targets
        folder = REFERENCES / "relu"
        job = self.compile("relu", folder / "dynamo-train.onnx", folder / "adamw.toml", {"replicate": 2}, "--set", "batch.micro=16",
                           "--set", "batch.global=64")
        code, _, err = self.run_ranks(2, job, "train", "--data", self.scratch / "x.npy", "--data", self.scratch / "targets.npy",
                                      "--out", self.scratch / "run")
        self.assertEqual(code, 1, err)
        self.assert_told_once(err, "rank 1: error: ", "targets", "77")
        self.assertEqual(self.checkpoints("run"), [])

    def test_non_finite_inputs_of_one_rank_are_named(self):
        # Rank 1 reads what is bad, every rank sees the loss.
        folder = REFERENCES / "relu"
        job = self.compile("relu", folder / "dynamo-train.onnx", folder / "adamw.toml", {"replicate": 2}, "--set", "batch.micro=16",
                           "--set", "batch.global=64")
        x = np.random.default_rng(1).standard_normal((64, 12)).astype(np.float32)
        x[20] = np.inf
        np.savez(self.scratch / "data.npz", x=x, targets=np.zeros(64, np.int64))
        code, _, err = self.run_ranks(2, job, "train", "--data", self.scratch / "data.npz", "--out", self.scratch / "run",
                                      "--set", "train.non_finite_limit=3")
        self.assertEqual(code, 5, err)
        self.assert_told_once(err, "the updates of steps 1 to 3 were skipped", "rank 1: input 'x' of the last batch holds non-finite values")

    def test_a_damaged_checkpoint_is_told_once(self):
        job, data = self.mlp({"replicate": 2})
        self.train(2, job, data, "run", "--steps", 2)
        shard = next((self.scratch / "run/checkpoints/step-00000002/model").glob("*.safetensors"))
        content = bytearray(shard.read_bytes())
        content[-100] ^= 1
        shard.write_bytes(content)
        code, _, err = self.run_ranks(2, job, "train", "--data", data, "--out", self.scratch / "run")
        self.assertEqual(code, 1, err)
        self.assert_told_once(err, shard.name, "is damaged")  # by the rank that reads the block


if __name__ == "__main__":
    if "--seed" in sys.argv:
        at = sys.argv.index("--seed")
        SEED = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    print(f"--seed {SEED}", flush=True)
    ranks_test.main(__doc__)
