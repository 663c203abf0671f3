#!/usr/bin/env python3
"""Sums a run of ./test: test_summary.py FOLDER

FOLDER has stages.tsv, a line "name <tab> exit status <tab> seconds" for each stage, and for a stage that ran
ctest also <name>.xml, its JUnit report: an entry is a test suite, and its output names the cases. A stage without
a report counts as one test. The last line printed is "N passed, N failed, N skipped"; the exit status is 1 if
anything failed or nothing ran.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


# How GoogleTest reports a case: "[       OK ] Suite.Case (3 ms)". Its list of failures at the end has no times.
CASE = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] \S.* \(\d+ ms\)$", re.MULTILINE)


def count_entry(entry):
    """The cases of a test suite, or one for a program that is no GoogleTest.

    ctest reports a test whose program is missing as "notrun", like a skipped one; only the reason differs.
    """
    status = entry.get("status")
    results = CASE.findall(entry.findtext("system-out", ""))
    cases = Counts(results.count("OK"), results.count("FAILED"), results.count("SKIPPED"))
    if status == "run":
        return cases if results else Counts(passed=1)
    skipped = entry.find("skipped")
    if status == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_")):
        return Counts(skipped=1)
    # A program that ended in the middle of a case has no line for it.
    return cases if cases.failed > 0 else cases + Counts(failed=1)


def count_report(path):
    """The tests in one JUnit report; an absent or broken report is one failure."""
    try:
        entries = ElementTree.parse(path).getroot().iter("testcase")
        return sum((count_entry(entry) for entry in entries), Counts())
    except (OSError, ElementTree.ParseError):
        return Counts(failed=1)


def count_stage(report, status):
    if not report.exists():
        return Counts(passed=1) if status == 0 else Counts(failed=1)
    counts = count_report(report)
    if status != 0 and counts.failed == 0:
        counts += Counts(failed=1)  # ctest itself failed
    return counts


def main(folder):
    total = Counts()
    for line in (folder / "stages.tsv").read_text(encoding="utf-8").splitlines():
        name, status, seconds = line.split("\t")
        counts = count_stage(folder / f"{name}.xml", int(status))
        total += counts
        print(f"{name:<18} {int(seconds):>5} s   {counts}")
    print(total)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
