"""A real model answers: real_model_test.py PATH_OF_HEARTH NAME [unittest options].

NAME is one of those of tools/fetch_model.py; the tests are skipped while that model is not in the user's cache.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from program import PROGRAM, hearth

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import fetch_model  # noqa: E402  (found through the path above)

NAME = sys.argv.pop(1)
MODEL = fetch_model.cache_dir() / fetch_model.MODELS[NAME].file

# Questions on which each model is sure; with others, rounding decides between near ties.
QUESTIONS = {
    "smollm2": "Tell me the capital of France.",
    "gemma3": "Question: What is the capital of France?\nAnswer:",
}
# Prompts whose greedy answers are longer than the comparison.
LONG_ANSWERS = {"smollm2": "Why is the sky blue?", "gemma3": "The history of the railway began"}
N_COMPARED = 128
N_EMULATED = 24

PIPES = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
KIBIBYTE = 1024
MEBIBYTE = 1 << 20
RSS_SLACK = 150 * MEBIBYTE


def greedy(*arguments):
    outcome = hearth("run", MODEL, *arguments, "--temperature", 0, "--json")
    assert outcome.code == 0, outcome.talk
    return json.loads(outcome.out)


def peak_memory(command):
    """(peak resident bytes, standard output) of a command."""
    with subprocess.Popen(command, **PIPES) as program:
        out = program.stdout.read()
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else KIBIBYTE), out.decode()


class RealModel(unittest.TestCase):
    def test_knows_the_capital_of_france(self):
        self.assertIn("Paris", greedy(QUESTIONS[NAME], "-n", 24)["text"])

    def test_answers_as_the_reference_does(self):
        prompt = LONG_ANSWERS[NAME]
        fast = greedy(prompt, "-n", N_COMPARED)
        slow = greedy(prompt, "-n", N_COMPARED, "--device", "reference")
        self.assertEqual(len(slow["tokens"]), N_COMPARED)
        self.assertEqual(fast["tokens"], slow["tokens"])

    def test_answers_the_same_with_the_kernels_of_gpus(self):
        prompt = LONG_ANSWERS[NAME]
        answer = greedy(prompt, "-n", N_EMULATED, "--device", "emulator")
        self.assertEqual(len(answer["tokens"]), N_EMULATED)
        self.assertEqual(answer["tokens"], greedy(prompt, "-n", N_EMULATED)["tokens"])

    def test_memory_is_the_file_the_cache_and_little_more(self):
        peak, out = peak_memory([PROGRAM, "run", MODEL, LONG_ANSWERS[NAME], "-n", "32", "--json"])
        report = json.loads(out)
        self.assertLessEqual(report["memory"]["weight_bytes"], report["memory"]["mapped_weight_bytes"])
        limit = MODEL.stat().st_size + report["memory"]["kv_bytes"] + RSS_SLACK
        self.assertLessEqual(peak, limit)

    def test_answers_the_same_with_weights_left_in_the_file(self):
        report = greedy(LONG_ANSWERS[NAME], "-n", 32, "--weights", "mapped")
        self.assertEqual(report["memory"]["weight_bytes"], 0)
        self.assertEqual(report["tokens"], greedy(LONG_ANSWERS[NAME], "-n", 32)["tokens"])

    def test_show_and_tokenize_read_it(self):
        report = json.loads(hearth("show", MODEL, "--json").out)
        self.assertTrue(report["is_supported"])
        self.assertLess(report["tensor_bytes"], MODEL.stat().st_size)
        text = "Grüße aus 東京 \U0001f600, it's 12345 o'clock"
        ids = hearth("tokenize", MODEL, text, "--ids", "--no-bos").out
        self.assertEqual(hearth("tokenize", MODEL, "--decode", ids).out, text + "\n")


if __name__ == "__main__":
    if not MODEL.is_file():
        print(f"{MODEL} is not there; tools/fetch_model.py {NAME} fetches it")
        sys.exit(77)
    unittest.main()
