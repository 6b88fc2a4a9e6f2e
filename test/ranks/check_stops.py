#!/usr/bin/env python3
"""A signal to one rank stops all after one step, with one checkpoint, and the next run resumes to the bits of one that was left alone.

    check_stops.py --tools build/dev/bin [unittest's options]
"""
import os
import signal

import ranks_test
from ranks_test import ranks_of

STEPS = 120


class Stops(ranks_test.RanksTest):
    def start_run(self, ranks, job, data, out, *options):
        return self.start(ranks, job, "train", "--data", data, "--out", self.scratch / out, "--steps", STEPS, *options)

    def check(self, axes, send, number, *options):
        """Stops two runs on their way; `send(process)` gives the signal `number`."""
        job, data = self.mlp(axes)
        ranks = 1
        for count in axes.values():
            ranks *= count
        whole = self.train(ranks, job, data, "whole", "--steps", STEPS)
        before = 0
        for steps in (10, 50):
            process = self.start_run(ranks, job, data, "parts", *options)
            self.wait_for_steps(process, "parts", steps)
            send(process)
            code, out, err = self.finish(process)
            self.assertEqual(code, 0, err)
            done = len(ranks_test.titan_job.losses_of(self.scratch / "parts"))
            self.assertLess(done, STEPS, "the run ended before it was stopped: raise the steps")
            self.assertGreater(done, before)
            before = done
            self.assertIn(f"step-{done:08d}", self.checkpoints("parts"))
            self.assertEqual(out.count(f"step {done} "), 1, out)  # one result, of rank 0
            self.assertIn(f"after step {done}", err)
            self.assertIn("stopped by ", err)
        self.assertEqual(len(self.checkpoints("parts")), 2)  # one a stop
        self.assert_same(self.train(ranks, job, data, "parts", "--steps", STEPS), whole)
        ranks_test.titan_job.run([self.tools / "titan-ckpt", "verify", self.scratch / f"parts/checkpoints/step-{STEPS:08d}"])

    def test_sigterm_to_rank_0(self):
        self.check({"replicate": 2}, lambda process: os.kill(ranks_of(process)[0], signal.SIGTERM), signal.SIGTERM)

    def test_sigterm_to_rank_1(self):
        self.check({"replicate": 2}, lambda process: os.kill(ranks_of(process)[1], signal.SIGTERM), signal.SIGTERM)

    def test_sigterm_to_titan_run(self):
        self.check({"shard": 2}, lambda process: process.send_signal(signal.SIGTERM), signal.SIGTERM)

    def test_sigusr1_to_the_last_of_three(self):
        job, data = self.mlp({"replicate": 3}, 96)
        process = self.start_run(3, job, data, "run")
        self.wait_for_steps(process, "run", 5)
        os.kill(ranks_of(process)[2], signal.SIGUSR1)
        code, _, err = self.finish(process)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(self.checkpoints("run")), 1)

    def test_sigint_to_titan_run_while_it_evaluates_and_saves(self):
        options = ["--set", "checkpoint.every=1", "--set", "train.eval_every=1", "--set", f"data.eval={self.mlp({})[1]}"]
        self.check({"replicate": 2}, lambda process: process.send_signal(signal.SIGINT), signal.SIGINT, *options)

    def test_a_stop_before_the_first_step_is_heard(self):
        job, data = self.mlp({"replicate": 2})
        process = self.start_run(2, job, data, "run")
        # The log is opened when the signals are handled.
        self.wait_for(process, (self.scratch / "run/metrics.jsonl").exists)
        os.kill(ranks_of(process)[0], signal.SIGTERM)
        code, _, err = self.finish(process)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(self.checkpoints("run")), 1)


if __name__ == "__main__":
    ranks_test.main(__doc__)
