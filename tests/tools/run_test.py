"""./run tells of a model that there is not before it installs or builds anything."""

import subprocess
import unittest
from pathlib import Path

RUN = Path(__file__).resolve().parents[2] / "run"


class Run(unittest.TestCase):
    def test_a_model_that_is_not_there_is_named_at_once(self):
        for arguments in (["--model", "nanno", "Hi"], ["--model=nanno"]):
            result = subprocess.run([RUN, *arguments], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual(result.returncode, 2)
            self.assertEqual(result.stdout, "")
            self.assertEqual(
                result.stderr, "run: no model 'nanno': expected nano, smollm2, gemma3, or a file or folder that exists\n"
            )


if __name__ == "__main__":
    unittest.main()
