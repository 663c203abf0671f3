"""tools/try_card.py with programs that only say what they were asked."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "try_card.py"

TEST_PROGRAM = """#!/bin/sh
[ "$HEARTH_TEST_GPU" = cuda ] || exit 3
cat > "${1#--gtest_output=json:}" <<'END'
{"tests": 2, "testsuites": [{"testsuite": [{"classname": "A", "name": "Works"},
  {"classname": "A", "name": "Fails", "failures": [{"failure": "no"}]}]}]}
END
"""
HEARTH = """#!/bin/sh
case "$1" in
  run) case "$*" in *"--device cpu"*) echo '{"tokens": [1, 2]}' ;; *) echo '{"tokens": [1, TOKEN]}' ;; esac ;;
  synth) : > "$3" ;;
  *) echo '{"command": "'"$1"'"}' ;;
esac
"""


TESTS = ("hearth_gpu_test", "hearth_gpu_backend_test", "hearth_gpu_lost_device_test")


def write(path: pathlib.Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


class TryCard(unittest.TestCase):
    def report_of(self, token: str, test_status: int) -> tuple[int, dict]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write(folder / "hearth", HEARTH.replace("TOKEN", token))
            for program in TESTS:
                write(folder / program, TEST_PROGRAM + f"exit {test_status}\n")
            file = folder / "report.json"
            done = subprocess.run([sys.executable, SCRIPT, file, "--programs", folder], capture_output=True, text=True)
            return done.returncode, json.loads(file.read_text())

    def test_reports_every_step(self):
        status, report = self.report_of("2", 0)
        self.assertEqual(status, 0)
        self.assertEqual(report["failed"], [])
        steps = {step["step"]: step for step in report["steps"]}
        self.assertEqual(steps["hearth_gpu_test"]["result"], {"cases": 2, "failed": ["A.Fails"]})
        self.assertEqual(steps["selftest"]["result"], {"command": "selftest"})
        self.assertEqual(steps["bench 8192"]["result"], {"command": "bench"})
        self.assertEqual(steps["bench 64 of 16 sequences"]["result"], {"command": "bench"})

    def test_says_what_failed(self):
        status, report = self.report_of("3", 1)
        self.assertEqual(status, 1)
        self.assertEqual(report["failed"], [*TESTS, "answer on cpu"])
        answer = next(step for step in report["steps"] if step["step"] == "answer on cpu")
        self.assertEqual(answer["output"], "the tokens differ: [1, 3] on cuda, [1, 2] on cpu")


if __name__ == "__main__":
    unittest.main()
