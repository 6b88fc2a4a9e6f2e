#!/usr/bin/env python3
"""Jobs that mpirun starts train to the bits of titan-run, end when a rank or a host is lost, and are refused under another MPI's mpirun.

    check_mpi.py --tools build/dev/bin [unittest's options]

Skipped, with the reason, where an MPI or network namespaces are not there.
"""
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import ranks_test

LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
STEPS = 10


class MpiTest(ranks_test.RanksTest):
    def setUp(self):
        super().setUp()
        for variable in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
            os.environ[variable] = "1"
        os.environ.pop("TITAN_MPI", None)

    def need(self, *names):
        for name in names:
            if not shutil.which(LAUNCHERS[name][0]):
                self.skipTest(f"no {LAUNCHERS[name][0]} here")

    def under(self, name, ranks, *command):
        """A process: mpirun of that MPI."""
        return self.launch([*LAUNCHERS[name], "-n", ranks, *command])

    def launch(self, command):
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   text=True, start_new_session=True)
        self.addCleanup(end_group, process)
        return process

    def fsdp(self):
        return self.mlp({"shard": 2}, 64, "--set", "mesh.strategy='fsdp'")

    def train_options(self, data, out, *options):
        return ["train", "--data", data, "--out", self.scratch / out, *options]

    def built_with(self, job, data, name):
        """The job carries a shim of that MPI."""
        self.need(name)
        code, _, err = self.finish(self.under(name, 2, job, "info"))
        if "was built without its headers" in err:
            self.skipTest(err.splitlines()[0])
        self.assertEqual(code, 0, err)


class Mpi(MpiTest):
    def test_trains_to_the_bits_of_shared_memory(self):
        for mesh, job_and_data in (("ddp", self.mlp({"replicate": 2})), ("fsdp", self.fsdp())):
            job, data = job_and_data
            expected = self.train(2, job, data, f"{mesh}-here", "--steps", STEPS)
            for name in LAUNCHERS:
                with self.subTest(mesh=mesh, mpi=name):
                    self.built_with(job, data, name)
                    out = f"{mesh}-{name}"
                    code, _, err = self.finish(self.under(name, 2, job, *self.train_options(data, out, "--steps", STEPS)))
                    self.assertEqual(code, 0, err)
                    self.assert_same(self.result(out), expected)

    def test_counts_what_moves_as_shared_memory_does(self):
        job, data = self.fsdp()
        self.built_with(job, data, "mpich")
        profile = [job, "profile", "--json", "--data", data, "--steps", 2]
        _, here, err = self.run_ranks(2, *profile)
        code, there, mpi_err = self.finish(self.under("mpich", 2, *profile))
        self.assertEqual(code, 0, err + mpi_err)
        self.assertEqual(ranks_test.json.loads(there)["communication"], ranks_test.json.loads(here)["communication"])

    def test_another_mpi_is_refused(self):
        job, data = self.fsdp()
        self.need(*LAUNCHERS)
        self.built_with(job, data, "openmpi")
        for name, other in (("openmpi", "mpich"), ("mpich", "openmpi")):
            with self.subTest(name):
                os.environ["TITAN_MPI"] = other
                code, _, err = self.finish(self.under(name, 2, job, *self.train_options(data, "run")))
                self.assertEqual(code, 3, err)
                self.assert_told_once(err, f"{NAMES[name]}'s mpirun started 2 ranks, and {NAMES[other]} sees 1")
        os.environ["TITAN_MPI"] = "intel"
        code, _, err = self.finish(self.under("mpich", 2, job, *self.train_options(data, "run")))
        self.assertEqual(code, 2, err)
        self.assertIn("TITAN_MPI = 'intel' is unknown: use openmpi or mpich", err)
        self.assertFalse((self.scratch / "run").exists())

    def test_another_number_of_ranks_is_refused_once(self):
        job, data = self.fsdp()
        self.built_with(job, data, "mpich")
        code, _, err = self.finish(self.under("mpich", 3, job, *self.train_options(data, "run")))
        self.assertEqual(code, 2, err)
        self.assert_told_once(err, "this job runs on 2 ranks (shard 2), and 3 were started")

    def test_a_lost_rank_is_named(self):
        job, data = self.fsdp()
        for name in LAUNCHERS:
            with self.subTest(name):
                self.built_with(job, data, name)
                process = self.under(name, 2, job, *self.train_options(data, name))
                self.wait_for_steps(process, name, 3)
                pids = ranks_of(job)
                os.kill(pids[1], signal.SIGKILL)
                began = time.monotonic()
                code, out, err = self.finish(process)
                self.assertLess(time.monotonic() - began, ranks_test.GONE)
                self.assertNotEqual(code, 0)
                self.wait_until_gone(pids.values())
                self.assertFalse(self.checkpoints(name))
                # Its mpirun kills the other, which may have noticed first, and its report may be of either.
                if name == "mpich":
                    self.assertRegex(out + err, rf"PID ({pids[0]}|{pids[1]}) RUNNING AT|error: rank 1 \(pid {pids[1]} on ")
                    continue
                self.assertIn(f"error: rank 1 (pid {pids[1]} on ", err)
                self.assertIn("; rank 0 waited at '", err)
                flights = ranks_test.json.loads((self.scratch / name / "ranks/rank-0000.json").read_text())
                self.assertEqual(flights["failure"]["rank"], 1)
                self.assertIn("waited", [collective["state"] for collective in flights["collectives"]])

    def test_a_stopped_rank_is_named(self):
        job, data = self.fsdp()
        self.built_with(job, data, "mpich")
        process = self.under("mpich", 2, job, *self.train_options(data, "run"))
        self.wait_for_steps(process, "run", 3)
        pids = ranks_of(job)
        os.kill(pids[1], signal.SIGSTOP)
        began = time.monotonic()
        self.wait_until_gone([pids[0]], ranks_test.GONE)
        self.assertLess(time.monotonic() - began, ranks_test.GONE)
        os.kill(pids[1], signal.SIGKILL)
        _, _, err = self.finish(process)
        self.assertIn(f"error: rank 1 (pid {pids[1]} on ", err)
        self.assertIn("gave no sign of life for 5 s", err)

    def test_a_stop_of_mpirun_ends_all_with_a_checkpoint(self):
        job, data = self.fsdp()
        for name, stop in (("openmpi", signal.SIGUSR1), ("mpich", signal.SIGTERM)):
            with self.subTest(name):
                self.built_with(job, data, name)
                process = self.under(name, 2, job, *self.train_options(data, name))
                self.wait_for_steps(process, name, 3)
                process.send_signal(stop)
                code, _, err = self.finish(process)
                self.assertEqual(code, 0, err)
                self.assertEqual(len(self.checkpoints(name)), 1)

    def test_a_stop_of_one_rank_ends_all_with_a_checkpoint(self):
        job, data = self.fsdp()
        for name in LAUNCHERS:
            with self.subTest(name):
                self.built_with(job, data, name)
                process = self.under(name, 2, job, *self.train_options(data, name))
                self.wait_for_steps(process, name, 3)
                os.kill(ranks_of(job)[1], signal.SIGTERM)
                code, _, err = self.finish(process)
                self.assertEqual(code, 0, err)
                self.assertEqual(len(self.checkpoints(name)), 1)


class TwoHosts(MpiTest):
    """Two network namespaces with a link between them, which Open MPI takes for hosts."""

    def setUp(self):
        super().setUp()
        self.job, self.data = self.fsdp()
        self.built_with(self.job, self.data, "openmpi")
        self.a, self.b = (f"titan{side}{os.getpid()}" for side in "ab")
        if not shutil.which("ip") or self.ip("netns", "add", self.a) != 0:
            self.skipTest("network namespaces are not permitted here")
        self.addCleanup(self.remove, self.a)
        self.addCleanup(self.remove, self.b)
        self.ip("netns", "add", self.b)
        self.ip("-n", self.a, "link", "add", "left", "type", "veth", "peer", "name", "right", "netns", self.b)
        for host, link, address in ((self.a, "left", "10.213.7.1/24"), (self.b, "right", "10.213.7.2/24")):
            self.ip("-n", host, "addr", "add", address, "dev", link)
            self.ip("-n", host, "link", "set", "lo", "up")
            self.ip("-n", host, "link", "set", link, "up")
        self.wait_for_link()
        self.agent = self.scratch / "agent"
        self.agent.write_text("#!/bin/sh\nhost=$1; shift\n"
                              "exec ip netns exec $host unshare --uts -- sh -c \"hostname $host; $*\"\n")
        self.agent.chmod(0o755)

    def wait_for_link(self):
        """Until the other side refuses a connection, which it can only where it is reached."""
        knock = "import socket, sys; sys.exit(0 if socket.socket().connect_ex(('10.213.7.2', 9)) == 111 else 1)"
        end = time.monotonic() + 10
        while subprocess.run([*self.inside(self.a), "timeout", "1", sys.executable, "-c", knock]).returncode != 0:
            if time.monotonic() > end:
                self.skipTest("a link between network namespaces carries nothing here")

    def remove(self, host):
        """With the daemons of mpirun that are cut off there."""
        for pid in subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.ip("netns", "del", host)

    def ip(self, *arguments):
        return subprocess.run(["ip", *arguments], capture_output=True).returncode

    def inside(self, host):
        return ["ip", "netns", "exec", host]

    def on_both(self, *command):
        subnet = "10.213.7.0/24"
        words = [*LAUNCHERS["openmpi"], "--host", f"{self.a},{self.b}", "-n", 2, "--mca", "plm_rsh_agent", self.agent, "--mca", "btl",
                 "tcp,self", "--mca", "btl_tcp_if_include", subnet, "--mca", "oob_tcp_if_include", subnet, *command]
        line = shlex.join(map(str, words))
        return self.launch([*self.inside(self.a), "unshare", "--uts", "--", "sh", "-c", f"hostname {self.a}; exec {line}"])

    def test_train_to_the_bits_of_one(self):
        expected = self.train(2, self.job, self.data, "here", "--steps", 20)
        code, _, err = self.finish(self.on_both(self.job, *self.train_options(self.data, "there", "--steps", 20)))
        self.assertEqual(code, 0, err)
        self.assert_same(self.result("there"), expected)

    def test_a_cut_link_ends_both_and_names_the_other(self):
        script = self.scratch / "rank"  # the exit codes, which mpirun cannot bring home
        script.write_text(f"#!/bin/sh\n{shlex.quote(str(self.job))} \"$@\" 2>'{self.scratch}'/$OMPI_COMM_WORLD_RANK.err\n"
                          f"echo $? >'{self.scratch}'/$OMPI_COMM_WORLD_RANK.code\n")
        script.chmod(0o755)
        process = self.on_both(script, *self.train_options(self.data, "run"))
        self.wait_for_steps(process, "run", 3)
        pids = ranks_of(self.job)
        self.assertEqual(self.ip("-n", self.a, "link", "set", "left", "down"), 0)
        began = time.monotonic()
        self.wait_until_gone(pids.values(), ranks_test.GONE)
        self.assertLess(time.monotonic() - began, ranks_test.GONE)
        for rank, (pid, other) in enumerate(((pids[1], self.b), (pids[0], self.a))):
            self.assertIn(f"error: rank {1 - rank} (pid {pid} on {other}) ", (self.scratch / f"{rank}.err").read_text())
            self.assertEqual(self.code_of(rank), 5)
        self.assertFalse(self.checkpoints("run"))

    def code_of(self, rank):
        file = self.scratch / f"{rank}.code"
        end = time.monotonic() + 5
        while not (file.exists() and file.read_text()) and time.monotonic() < end:
            time.sleep(0.01)
        return int(file.read_text())


def ranks_of(job):
    """{rank: pid} of the processes of a job, which mpirun's daemons have started."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "exe") != str(job):
                continue
            for variable in (process / "environ").read_bytes().split(b"\0"):
                if variable.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                    found[int(variable.split(b"=")[1])] = int(process.name)
    return found


def descendants(pid):
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))


def end_group(process):
    """mpirun's ranks are in groups of their own, so they are ended one by one."""
    for pid in [*descendants(process.pid), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()


if __name__ == "__main__":
    ranks_test.main(__doc__)
