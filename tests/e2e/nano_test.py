"""The model that the repository ships answers without a network: nano_test.py PATH_OF_HEARTH [unittest options]."""

import json
import pathlib
import subprocess
import sys
import unittest

from program import hearth

ROOT = pathlib.Path(__file__).resolve().parents[2]


def path_of_nano():
    """As ./run asks for it."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "fetch_model.py", "nano"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


class Nano(unittest.TestCase):
    def test_greets_back_and_ends_its_turn(self):
        outcome = hearth("run", path_of_nano(), "Hello!", "--temperature", 0, "--draft-depth", 2, "--json")
        self.assertEqual(outcome.code, 0, outcome.talk)
        report = json.loads(outcome.out)
        self.assertEqual(report["text"], "The user greets me.\n</think>\n\nHello! How can I help you?")
        self.assertEqual(report["finish_reason"], "end_of_generation")
        self.assertGreater(report["speculation"]["accepted"], 0)

    def test_the_file_is_small_enough_for_a_repository(self):
        self.assertLessEqual(pathlib.Path(path_of_nano()).stat().st_size, 40_000_000)


if __name__ == "__main__":
    unittest.main()
