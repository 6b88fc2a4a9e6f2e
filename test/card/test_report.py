#!/usr/bin/env python3
"""What a stage writes of its checks, and what a summary makes of it."""
import json
import tempfile
import unittest
from pathlib import Path

import report


def refuse():
    raise report.Failed("2 is not 3", {"found": 2})


def skip():
    raise report.Skipped("no card")


class ReportTest(unittest.TestCase):
    def checks(self, *checks, at_once=1):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "checks.json"
            made = report.Report(path)
            right = made.check_all(checks, at_once)
            return right, json.loads(path.read_text())["checks"]

    def test_a_check_is_ok_failed_or_skipped(self):
        right, checks = self.checks(("a", lambda: {"x": 1}), ("b", refuse), ("c", skip))
        self.assertFalse(right)
        self.assertEqual([check["status"] for check in checks], ["ok", "failed", "skipped"])
        self.assertEqual([checks[0]["facts"], checks[1]["reason"], checks[1]["facts"]], [{"x": 1}, "2 is not 3", {"found": 2}])

    def test_another_error_fails_and_keeps_its_place(self):
        _, checks = self.checks(("a", lambda: 1 // 0))
        self.assertEqual(checks[0]["reason"], "ZeroDivisionError: integer division or modulo by zero")
        self.assertIn("test_report.py", checks[0]["trace"])

    def test_checks_at_once_are_all_kept(self):
        _, checks = self.checks(*[(str(i), lambda: None) for i in range(40)], at_once=4)
        self.assertEqual(sorted(int(check["name"]) for check in checks), list(range(40)))

    def test_the_file_is_whole_behind_each_check(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "checks.json"
            made = report.Report(path)
            seen = []
            for _ in range(3):
                made.check("a", lambda: seen.append(len(json.loads(path.read_text())["checks"])))
            self.assertEqual(seen, [0, 1, 2])

    def test_verdicts(self):
        _, checks = self.checks(("a", lambda: None), ("b", refuse), ("c", skip))
        self.assertEqual(report.verdict(checks), "failed: 1 of 3 checks, the first 'b'")
        self.assertEqual(report.verdict(checks[:1]), "ok, 1 checks")
        self.assertEqual(report.verdict([checks[0], checks[2]]), "ok, 2 checks, 1 skipped")
        self.assertEqual(report.verdict(checks[2:]), "skipped: no card")

    def test_a_summary_names_what_is_not_ok_and_counts(self):
        _, checks = self.checks(("a", lambda: {"text": "H100\n80 GB"}), ("b", refuse), ("c", skip))
        stages = {"probe": {"status": "failed", "summary": report.verdict(checks), "seconds": 3.2, "checks": checks},
                  "train": {"status": "late", "summary": "failed: ended after 9 s, behind 0 checks", "seconds": 9, "checks": []},
                  "kernels": {"status": "failed", "summary": "failed: exit 1: no file", "seconds": 1, "checks": checks[:1]},
                  "bench": {"status": "not run", "summary": "not run: 1 of 570 s are left", "checks": []}}
        self.assertEqual(report.summary_text(stages).splitlines(), [
            "probe: failed: 1 of 3 checks, the first 'b' (3 s)", "  a", "    H100", "    80 GB", "  failed b: 2 is not 3", "  skipped c: no card",
            "train: failed: ended after 9 s, behind 0 checks (9 s)", "kernels: failed: exit 1: no file (1 s)", "  a", "    H100", "    80 GB",
            "bench: not run: 1 of 570 s are left",
            "4 stages: 4 checks, 2 ok, 1 failed, 1 skipped; 1 stages late, 1 not run, 1 broken"])


if __name__ == "__main__":
    unittest.main()
