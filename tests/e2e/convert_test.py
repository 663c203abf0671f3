"""Hugging Face folders become files that answer the same: convert_test.py PATH_OF_HEARTH [unittest options]."""

import json
import pathlib
import tempfile
import unittest

from program import TESTS, hearth

FOLDERS = sorted(path.parent for path in (TESTS / "golden" / "huggingface").glob("*/config.json"))
MLX_FOLDERS = sorted(path.parent for path in (TESTS / "golden" / "mlx").glob("*/config.json"))
ANSWER = ("the e\u0301 the", "--raw", "--temperature", 0, "-n", 16, "--json")


def tokens(model, *options):
    outcome = hearth("run", model, *ANSWER, *options)
    assert outcome.code == 0, outcome.talk
    return json.loads(outcome.out)["tokens"]


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "model.gguf"

    def convert(self, folder, *options):
        outcome = hearth("convert", folder, self.file, "--json", "--force", *options)
        self.assertEqual(outcome.code, 0, outcome.talk)
        return json.loads(outcome.out)

    def test_every_folder_becomes_a_file_that_answers_the_same(self):
        self.assertTrue(FOLDERS)
        for folder in FOLDERS:
            with self.subTest(folder.name):
                report = self.convert(folder)
                shown = json.loads(hearth("show", self.file, "--json").out)
                self.assertEqual(shown["tensor_bytes"], report["tensor_bytes"])
                self.assertEqual(len(shown["tensors"]), report["tensors"])
                as_folder = json.loads(hearth("show", folder, "--json").out)
                self.assertEqual(shown["architecture"], as_folder["architecture"])
                self.assertEqual(shown["needs"]["layers"], as_folder["needs"]["layers"])
                self.assertEqual(tokens(self.file), tokens(folder))

    def test_groups_of_mlx_stay_what_they_are(self):
        self.assertTrue(MLX_FOLDERS)
        for folder in MLX_FOLDERS:
            with self.subTest(folder.name):
                self.convert(folder)
                self.assertEqual(tokens(self.file), tokens(folder))

    def test_a_type_can_be_asked_for(self):
        self.convert(FOLDERS[0], "--type", "q8_0")
        types = {tensor["type"] for tensor in json.loads(hearth("show", self.file, "--json").out)["tensors"]}
        self.assertIn("Q8_0", types)

    def test_a_file_that_exists_is_kept(self):
        self.file.write_bytes(b"precious")
        refused = hearth("convert", FOLDERS[0], self.file)
        self.assertEqual((refused.code, self.file.read_bytes()), (1, b"precious"))
        self.assertIn("model.gguf: exists already", refused.talk)


if __name__ == "__main__":
    unittest.main()
