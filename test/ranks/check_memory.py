#!/usr/bin/env python3
"""What ranks of a language model have in memory is at most what their plan says.

    check_memory.py --tools build/dev/bin [unittest's options]
"""
import sys

import numpy as np

import ranks_test
from ranks_test import EXAMPLES, plan_of

# Runs what it is given and writes the largest resident set of it, in bytes. No pipe or socket of titan-run is closed on the way.
RESIDENT = """import os, sys
pid = os.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss * 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Memory(ranks_test.RanksTest):
    def check(self, strategy, axes, *options):
        """Bytes of the state of a rank."""
        ranks = int(np.prod(list(axes.values())))
        job = self.compile(f"char-{strategy}-{ranks}{'-'.join(options)}", EXAMPLES / "char/char.onnx", EXAMPLES / "char/train.toml", axes, "--set",
                           f"mesh.strategy={strategy}", "--set", "batch.micro=1", "--set", f"batch.global={2 * ranks}", *options)
        data = self.scratch / "train.txt"
        np.random.default_rng(0).integers(0, 256, 1 << 16, np.uint8).tofile(data)
        (self.scratch / "resident.py").write_text(RESIDENT)
        script = self.wrapper(job, f'exec {sys.executable} "{self.scratch}/resident.py" "{self.scratch}/$TITAN_RANK" "$JOB" "$@"')
        self.train(ranks, script, data, "run", "--steps", 2, "--set", "data.eval=''")
        memory = plan_of(job)["memory"]
        # A process counts the pages of other ranks that it reads, though the machine has them once.
        bound = memory["arena"] + memory["outside"]["bound"] + (ranks - 1) * memory["staging"]
        for rank in range(ranks):
            resident = int((self.scratch / str(rank)).read_text())
            self.assertLessEqual(resident, bound, f"rank {rank} of {ranks}, {strategy}")
        return memory["state"]["total"]

    def test_ranks_hold_what_their_plan_says(self):
        for strategy, axes in (("ddp", {"replicate": 2}), ("fsdp", {"shard": 2})):
            with self.subTest(strategy=strategy):
                self.check(strategy, axes)

    def test_parts_take_as_much_less(self):
        state = {ranks: self.check("fsdp", {"shard": ranks}, "--set", "mesh.sync=immediate", "--set", "mesh.bucket=2MB") for ranks in (2, 4)}
        self.assertLess(state[4], 0.51 * state[2])


if __name__ == "__main__":
    ranks_test.main(__doc__)
