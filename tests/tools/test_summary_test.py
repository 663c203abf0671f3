"""How tools/test_summary.py counts, on ctest reports as CMake 3.25 writes them."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import test_summary  # noqa: E402  (found through the path above)

PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message="Failed"/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
DISABLED = '<testcase name="d" status="disabled"><skipped message="Disabled"/></testcase>'
NOT_BUILT = '<testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>'

SUITE = """<testcase name="base:Half" status="{status}"><system-out>[----------] 3 tests from Half
[ RUN      ] Half.A
[       OK ] Half.A (1 ms)
{rest}
</system-out></testcase>"""
THREE_CASES = """[ RUN      ] Half.B
Skipped
[  SKIPPED ] Half.B (0 ms)
[ RUN      ] Half.C/0
{outcome}
[----------] 3 tests from Half (2 ms total)
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Half.B
{list}"""
SUITE_PASSED = SUITE.format(status="run", rest=THREE_CASES.format(outcome="[       OK ] Half.C/0 (12 ms)", list=""))
SUITE_FAILED = SUITE.format(
    status="fail",
    rest=THREE_CASES.format(
        outcome="[  FAILED  ] Half.C/0, where GetParam() = 7 (12 ms)",
        list="[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Half.C/0, where GetParam() = 7\n\n 1 FAILED TEST",
    ),
)
SUITE_ENDED = SUITE.format(status="fail", rest="[ RUN      ] Half.B\n==7==ERROR: AddressSanitizer: heap-use-after-free")


def summary(stages, **reports):
    """(last line, exit status) for stages.tsv and reports given as test cases or text."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "stages.tsv").write_text(stages, encoding="utf-8")
        for stage, cases in reports.items():
            text = f"<testsuite>{cases}</testsuite>" if cases != "broken" else "<testsuite>"
            (folder / f"{stage}.xml").write_text(text, encoding="utf-8")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = test_summary.main(folder)
        return output.getvalue().splitlines()[-1], status


class TestSummary(unittest.TestCase):
    def test_counts_a_stage_without_a_report_as_one_test(self):
        self.assertEqual(summary("check\t0\t3\ncore\t1\t60\n"), ("1 passed, 1 failed, 0 skipped", 1))

    def test_sums_reports_and_stages(self):
        self.assertEqual(
            summary("check\t0\t3\ndev\t0\t9\nslow\t0\t9\n", dev=PASSED + PASSED, slow=PASSED + SKIPPED + DISABLED),
            ("4 passed, 0 failed, 2 skipped", 0),
        )

    def test_counts_the_cases_of_a_suite(self):
        self.assertEqual(summary("dev\t0\t9\n", dev=SUITE_PASSED + PASSED), ("3 passed, 0 failed, 1 skipped", 0))
        self.assertEqual(summary("dev\t8\t9\n", dev=SUITE_FAILED), ("1 passed, 1 failed, 1 skipped", 1))

    def test_counts_a_program_that_ends_within_a_case_as_a_failure(self):
        self.assertEqual(summary("dev\t8\t9\n", dev=SUITE_ENDED), ("1 passed, 1 failed, 0 skipped", 1))

    def test_counts_a_failed_test_once(self):
        self.assertEqual(summary("dev\t8\t9\n", dev=PASSED + FAILED), ("1 passed, 1 failed, 0 skipped", 1))

    def test_counts_a_test_whose_program_is_missing_as_failed(self):
        self.assertEqual(summary("dev\t8\t9\n", dev=PASSED + NOT_BUILT), ("1 passed, 1 failed, 0 skipped", 1))

    def test_counts_a_broken_report_as_failed(self):
        self.assertEqual(summary("dev\t0\t9\ncheck\t0\t1\n", dev="broken"), ("1 passed, 1 failed, 0 skipped", 1))

    def test_counts_a_ctest_that_failed_without_a_failed_test(self):
        self.assertEqual(summary("dev\t8\t9\n", dev=PASSED), ("1 passed, 1 failed, 0 skipped", 1))

    def test_fails_when_nothing_ran(self):
        self.assertEqual(summary("dev\t0\t9\n", dev=SKIPPED), ("0 passed, 0 failed, 1 skipped", 1))


if __name__ == "__main__":
    unittest.main()
