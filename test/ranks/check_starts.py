#!/usr/bin/env python3
"""Ranks that are started wrong say so once, before anything is written, with exit code 2 or that of what is wrong.

    check_starts.py --tools build/dev/bin [unittest's options]
"""
import json
import subprocess

import ranks_test


class Starts(ranks_test.RanksTest):
    def assert_refused(self, ranks, command, code, *texts):
        found, _, err = self.run_ranks(ranks, *command)
        self.assertEqual(found, code, err)
        self.assert_told_once(err, *texts)

    def test_a_job_for_two_ranks_needs_two(self):
        job, data = self.mlp({"replicate": 2})
        train = [job, "train", "--data", data, "--out", self.scratch / "run"]
        words = f"this job runs on 2 ranks (replicate 2){{}}: start it with titan-run -n 2 {job} train"
        self.assert_refused(None, train, 2, words.format(""))
        self.assert_refused(1, train, 2, words.format(""))
        self.assert_refused(3, train, 2, words.format(", and 3 were started"))
        self.assertFalse((self.scratch / "run").exists())

    def test_a_job_for_both_axes_names_them(self):
        job, data = self.mlp({"replicate": 2, "shard": 2})
        self.assert_refused(None, [job, "eval", "--data", data], 2, "this job runs on 4 ranks (replicate 2 x shard 2): start it with "
                            f"titan-run -n 4 {job} eval")

    def test_a_job_for_one_rank_runs_on_one(self):
        job, data = self.mlp({})
        self.assert_refused(2, [job, "train", "--data", data, "--out", self.scratch / "run"], 2,
                            f"this job runs on 1 rank, and 2 were started: start it with {job} train")
        self.assertEqual(self.run_ranks(1, job, "train", "--data", data, "--out", self.scratch / "run", "--steps", 2)[0], 0)

    def test_plan_and_info_need_no_ranks(self):
        job, _ = self.mlp({"replicate": 2})
        for command in ("plan", "info"):
            alone = self.run_ranks(None, job, command, "--json")
            self.assertEqual(alone[0], 0, alone[2])
            json.loads(alone[1])
            on_ranks = self.run_ranks(2, job, command, "--json", "--threads", 1)
            self.assertEqual((on_ranks[0], on_ranks[2]), (0, ""))
            json.loads(on_ranks[1])  # once
        alone = self.run_ranks(None, job, "--help")
        self.assertEqual(self.run_ranks(2, job, "--help"), (0, alone[1], ""))

    def test_ranks_are_started_alike(self):
        job, data = self.mlp({"replicate": 2})
        out = self.scratch / "run"
        for other, words in (
                ('"$@" --set optimizer.lr=0.0001', "rank 1: optimizer.lr = 0.0001, rank 0: 0.002"),
                ('"$@" --steps 7', "rank 1: train.steps = 7, rank 0: 6000"),
                ('"$@" --gemm generated', "rank 1: --gemm = generated, rank 0: auto"),
                (f"train --data '{data}' --out '{out}-1'", f"rank 1: --out = '{out}-1', rank 0: '{out}'"),
                (f"eval --data '{data}' --out '{out}'", "rank 1: the command = eval, rank 0: train"),
                ("plan", "rank 1: the command = plan, rank 0: train"),
                ("--help", "rank 1: the command = --help, rank 0: train")):
            with self.subTest(other):
                script = self.wrapper(job, f'[ "$TITAN_RANK" = 1 ] && exec "$JOB" {other}')
                self.assert_refused(2, [script, "train", "--data", data, "--out", out], 2, words)
        self.assertFalse(out.exists())

    def test_another_job_is_another_program(self):
        job, data = self.mlp({"replicate": 2})
        other, _ = self.mlp({"replicate": 2}, 64, "--set", "optimizer.clip_norm=0.5")
        script = self.wrapper(job, f"[ \"$TITAN_RANK\" = 1 ] && JOB='{other}'")
        self.assert_refused(2, [script, "train", "--data", data, "--out", self.scratch / "run"], 2,
                            "rank 1: the program's fingerprint = ", "optimizer.clip_norm = 0.5, rank 0: 1.0")

    def test_ranks_read_the_same_data(self):
        job, data = self.mlp({"replicate": 2})
        for rank, samples in ((0, 512), (1, 500)):
            (self.scratch / str(rank)).mkdir()
            ranks_test.write_images(self.scratch / str(rank) / "data.npz", samples)
        script = self.wrapper(job, f"cd '{self.scratch}'/$TITAN_RANK")
        self.assert_refused(2, [script, "train", "--data", "data.npz", "--out", self.scratch / "run"], 2,
                            "rank 1: data.train = 500 samples (digest ", ", rank 0: 512 samples (digest ")

    def test_what_one_rank_cannot_read_is_named(self):
        job, data = self.mlp({"replicate": 2})
        (self.scratch / "0").mkdir()
        (self.scratch / "1").mkdir()
        (self.scratch / "0/data.npz").symlink_to(data)
        script = self.wrapper(job, f"cd '{self.scratch}'/$TITAN_RANK")
        self.assert_refused(2, [script, "train", "--data", "data.npz", "--out", self.scratch / "run"], 1, "error: rank 1: ", "data.npz")
        self.assertFalse((self.scratch / "run").exists())

    def test_what_no_rank_can_read_names_none(self):
        job, _ = self.mlp({"replicate": 2})
        code, _, err = self.run_ranks(2, job, "train", "--data", "nowhere.npz", "--out", self.scratch / "run")
        self.assertEqual(code, 1)
        self.assert_told_once(err, "nowhere.npz")
        self.assertNotIn("rank", err)

    def test_a_wrong_option_of_one_rank_is_named(self):
        job, data = self.mlp({"replicate": 2})
        script = self.wrapper(job, '[ "$TITAN_RANK" = 1 ] && set -- "$@" --no-such-option')
        self.assert_refused(2, [script, "train", "--data", data, "--out", self.scratch / "run"], 2, "error: rank 1: ", "--no-such-option")

    def test_an_out_that_a_rank_does_not_see_is_named(self):
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces here")
        job, data = self.mlp({"replicate": 2})
        out = self.scratch / "run"
        out.mkdir()
        script = self.wrapper(job, "[ \"$TITAN_RANK\" = 1 ] && exec unshare -rm sh -c "
                              f"'mount -t tmpfs none \"{out}\" && exec \"$0\" \"$@\"' \"$JOB\" \"$@\"")
        self.assert_refused(2, [script, "train", "--data", data, "--out", out, "--steps", 1], 3, f"rank 1: '{out}' on ",
                            "give an --out that all ranks share")

    def test_a_locked_directory_is_told_once(self):
        job, data = self.mlp({"replicate": 2})
        train = [job, "train", "--data", data, "--out", self.scratch / "run"]
        first = self.start(2, *train)
        self.wait_for_steps(first, "run", 1)
        self.assert_refused(2, train, 3, "is in use by another process")

    def test_a_seed_of_a_resumed_run_is_refused_once(self):
        job, data = self.mlp({"replicate": 2})
        self.train(2, job, data, "run", "--steps", 2)
        self.assert_refused(2, [job, "train", "--data", data, "--out", self.scratch / "run", "--set", "train.seed=5"], 2,
                            "train.seed = 5, but the run was started with 0")


if __name__ == "__main__":
    ranks_test.main(__doc__)
