"""./run tells of a model that there is not before it installs or builds anything."""

import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "run"
sys.path.insert(0, str(ROOT / "tools"))

import fetch_model  # noqa: E402


class Run(unittest.TestCase):
    def test_a_model_that_is_not_there_is_named_at_once(self):
        for arguments in (["--model", "nanno", "Hi"], ["--model=nanno"]):
            result = subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stdout, "")
            self.assertEqual(
                result.stderr, "run: no model 'nanno': expected nano, smollm2, gemma3, or a file or folder that exists\n"
            )

    def test_it_knows_every_model_that_can_be_fetched(self):
        names = RUN.read_text(encoding="utf-8").split('case "$model" in\n')[1].split(")")[0].split("|")
        known = {name.strip() for name in names} - {"*/*", "*.gguf"}
        self.assertEqual(known, set(fetch_model.MODELS) | set(fetch_model.SHIPPED))


if __name__ == "__main__":
    unittest.main()
