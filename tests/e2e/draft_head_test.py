"""An MTP head that has a file of its own guesses for its model: draft_head_test.py PATH_OF_HEARTH [unittest options]."""

import json
import pathlib
import tempfile
import unittest

from nano_test import path_of_nano
from program import TESTS, GgufFile, hearth


def split(model, folder):
    """`model` without its head, and the head alone, as two files."""
    architecture = GgufFile(model).keys["general.architecture"][12:].decode()
    trunk, head = GgufFile(model), GgufFile(model)
    n_trunk = trunk.count(f"{architecture}.block_count") - 1
    block = f"blk.{n_trunk}."
    trunk.tensors = {name: data for name, data in trunk.tensors.items() if not name.startswith(block)}
    trunk.set_count(f"{architecture}.block_count", n_trunk)
    trunk.set_count(f"{architecture}.nextn_predict_layers", 0)
    head.tensors = {name: data for name, data in head.tensors.items() if name.startswith(block)}
    trunk.write(folder / "trunk.gguf")
    head.write(folder / "head.gguf")
    return folder / "trunk.gguf", folder / "head.gguf"


class DraftHead(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def answer(self, *options):
        outcome = hearth("run", *options, "--json")
        self.assertEqual(outcome.code, 0, outcome.talk)
        return json.loads(outcome.out)

    def test_answers_of_nano_are_those_without_guesses(self):
        trunk, head = split(pathlib.Path(path_of_nano()), self.folder)
        for sampling in (("--temperature", 0), ("--temperature", 1.0, "--seed", 7)):
            request = (trunk, "What is the capital of France?", "-n", 48, *sampling)
            plain = self.answer(*request)
            self.assertIsNone(plain["speculation"])
            for depth in (1, 3, "auto"):
                guessed = self.answer(*request, "--draft-model", head, "--draft-depth", depth)
                self.assertEqual(guessed["tokens"], plain["tokens"])
                if depth != "auto":
                    self.assertGreater(guessed["speculation"]["drafted"], 0)
                    self.assertGreater(guessed["speculation"]["accepted"], 0)

    def test_tiny_models_of_random_weights_answer_the_same_too(self):
        for name in ("qwen35-heads", "qwen35moe"):
            trunk, head = split(TESTS / "golden" / "arch" / f"{name}.gguf", self.folder)
            request = (trunk, "the the", "--raw", "--temperature", 0, "-n", 32)
            guessed = self.answer(*request, "--draft-model", head, "--draft-depth", 2)
            self.assertEqual(guessed["tokens"], self.answer(*request)["tokens"])
            self.assertGreater(guessed["speculation"]["drafted"], 0)

    def test_the_head_of_another_model_is_refused(self):
        trunk, _ = split(TESTS / "golden" / "arch" / "qwen35-heads.gguf", self.folder)
        (self.folder / "other").mkdir()
        _, head = split(TESTS / "golden" / "arch" / "qwen35moe.gguf", self.folder / "other")
        refused = hearth("run", trunk, "the", "--raw", "--draft-model", head)
        self.assertEqual(refused.code, 1)
        self.assertIn("expected an MTP head of qwen35 with 3 layers, found one of qwen35moe with 4", refused.talk)


if __name__ == "__main__":
    unittest.main()
