"""The commands of the real program on tiny models: cli_test.py PATH_OF_HEARTH [unittest options]."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from program import PROGRAM, TINY, TINY_MODELS, gguf_without_tensors, hearth, with_chat_template

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path


class Run(Files):
    def test_answers_with_every_tiny_model_the_same_on_both_backends(self):
        self.assertTrue(TINY_MODELS)
        for model in TINY_MODELS:
            with self.subTest(model.name):
                options = ("the the", "--raw", "--temperature", 0, "-n", 16, "--json")
                fast = hearth("run", model, *options)
                slow = hearth("run", model, *options, "--device", "reference")
                self.assertEqual((fast.code, slow.code), (0, 0), fast.talk + slow.talk)
                self.assertEqual(json.loads(fast.out)["tokens"], json.loads(slow.out)["tokens"])

    def test_threads_do_not_change_the_answer(self):
        answers = {
            hearth("run", TINY, "the", "--raw", "--seed", 7, "-n", 32, "--threads", n).out for n in (1, 2, 4)
        }
        self.assertEqual(len(answers), 1)

    def test_the_answer_goes_to_stdout_and_talk_to_stderr(self):
        plain = hearth("run", TINY, "the", "--raw", "--seed", 1, "-n", 8, "--verbose")
        report = json.loads(hearth("run", TINY, "the", "--raw", "--seed", 1, "-n", 8, "--json").out)
        self.assertEqual(plain.out, report["text"] + "\n")
        for word in ("load", "prompt", "generation", "memory", "seed         1"):
            self.assertIn(word, plain.talk)

    def test_json_tells_everything_about_the_answer(self):
        report = json.loads(hearth("run", TINY, "the", "--raw", "-n", 5, "--seed", 3, "--json").out)
        self.assertEqual(report["finish_reason"], "max_tokens")
        self.assertEqual(len(report["tokens"]), 5)
        self.assertEqual(report["seed"], 3)
        self.assertGreater(report["n_prompt_tokens"], 0)
        for name in ("load_ms", "prompt_ms", "first_token_ms", "prompt_tokens_per_s", "generated_tokens_per_s"):
            self.assertGreater(report["timings"][name], 0, name)
        self.assertGreater(report["memory"]["weight_bytes"], 0)
        self.assertGreater(report["memory"]["kv_bytes"], 0)

    def test_a_seed_repeats_an_answer(self):
        first = json.loads(hearth("run", TINY, "the", "--raw", "-n", 24, "--json").out)
        again = json.loads(hearth("run", TINY, "the", "--raw", "-n", 24, "--json", "--seed", first["seed"]).out)
        self.assertEqual(first["tokens"], again["tokens"])

    def test_a_model_without_template_says_that_it_completes(self):
        self.assertIn("no chat template", hearth("run", TINY, "the", "-n", 2).talk)
        self.assertEqual(hearth("run", TINY, "the", "-n", 2, "--raw").talk, "")
        self.assertIn("--system has no effect", hearth("run", TINY, "the", "-n", 2, "--raw", "--system", "x").talk)

    def test_the_models_own_template_makes_the_prompt(self):
        model = self.file("chat.gguf", with_chat_template(TINY, TEMPLATE))
        options = ("--temperature", 0, "-n", 8, "--json")
        chat = hearth("run", model, "hi", "--system", "sys", *options)
        self.assertEqual(chat.talk, "")
        n_template = len(json.loads(hearth("tokenize", model, "[system]sys[user]hi[assistant]", "--no-bos",
                                           "--json").out)["tokens"])  # fmt: skip
        self.assertEqual(json.loads(chat.out)["n_prompt_tokens"], n_template)

    def test_a_template_that_refuses_is_an_error_with_its_message(self):
        model = self.file("chat.gguf", with_chat_template(TINY, "{{ raise_exception('only tools here') }}"))
        outcome = hearth("run", model, "hi")
        self.assertEqual(outcome.code, 1)
        self.assertIn("only tools here", outcome.talk)

    def test_the_prompt_may_come_from_argument_pipe_or_both(self):
        options = ("--raw", "--temperature", 0, "-n", 4, "--json")
        argument = hearth("run", TINY, "the the", *options)
        pipe = hearth("run", TINY, *options, text="the the\n")
        self.assertEqual(json.loads(argument.out)["tokens"], json.loads(pipe.out)["tokens"])
        both = hearth("run", TINY, "the", *options, text="the")
        joined = hearth("run", TINY, "the\n\nthe", *options)
        self.assertEqual(json.loads(both.out)["n_prompt_tokens"], json.loads(joined.out)["n_prompt_tokens"])

    def test_a_full_context_is_never_silent(self):
        outcome = hearth("run", TINY, "the", "--raw", "--context", 16, "--logit-bias", "2=-100", "--json")
        self.assertEqual(outcome.code, 0)
        self.assertEqual(json.loads(outcome.out)["finish_reason"], "context_full")
        self.assertIn("context of 16 tokens is full", outcome.talk)

    def test_a_prompt_longer_than_the_context_names_both_lengths(self):
        outcome = hearth("run", TINY, "the " * 40, "--raw", "--context", 16)
        self.assertEqual((outcome.code, outcome.out), (1, ""))
        self.assertRegex(outcome.talk, r"^hearth: the prompt has \d+ tokens, but the context holds 16 .*\n$")

    def test_a_stop_text_ends_the_answer_and_is_not_shown(self):
        whole = json.loads(hearth("run", TINY, "the", "--raw", "--seed", 5, "-n", 48, "--json").out)["text"]
        stop = whole[len(whole) // 2 : len(whole) // 2 + 2]
        if not stop.isprintable() or "\ufffd" in stop:
            stop = next(c for c in whole if c.isprintable() and c != "\ufffd")
        cut = json.loads(
            hearth("run", TINY, "the", "--raw", "--seed", 5, "-n", 48, "--json", "--stop", stop).out
        )
        self.assertEqual(cut["finish_reason"], "stop_text")
        self.assertEqual(cut["text"], whole[: whole.index(stop)])

    def test_every_piece_of_output_is_whole_utf8(self):
        # Random weights and a flat distribution give every byte there is.
        command = [PROGRAM, "run", TINY, "the", "--raw", "--temperature", "5", "--top-k", "0", "--top-p", "1",
                   "--min-p", "0", "-n", "200", "--seed", "11", "--logit-bias", "2=-100"]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as program:
            pieces = []
            while piece := program.stdout.read(1 << 16):
                pieces.append(piece.decode("utf-8", errors="strict"))  # writes this small arrive whole
        self.assertEqual(program.returncode, 0)
        self.assertGreater(len("".join(pieces).encode()), 200)

    def test_key_types_and_backends_can_be_chosen(self):
        heads_of_32 = TINY.with_name("gemma3.gguf")
        for kind in ("f32", "f16", "bf16", "q8_0", "q4_0"):
            self.assertEqual(hearth("run", heads_of_32, "the", "--raw", "-n", 2, "--kv-type", kind).code, 0)
        refused = hearth("run", TINY, "the", "--raw", "-n", 2, "--kv-type", "q8_0")
        self.assertEqual(refused.code, 1)
        self.assertIn("length 16, expected a multiple of 32", refused.talk)

    def test_a_longer_context_than_trained_is_a_warning(self):
        outcome = hearth("run", TINY, "the", "--raw", "-n", 2, "--context", 100_000)
        self.assertEqual(outcome.code, 0)
        self.assertIn("was trained for", outcome.talk)


class Show(Files):
    def test_prints_metadata_tensors_and_types(self):
        for model in TINY_MODELS:
            with self.subTest(model.name):
                outcome = hearth("show", model)
                self.assertEqual((outcome.code, outcome.talk), (0, ""))
                for word in ("architecture", "context", "general.architecture", "token_embd.weight", "F32"):
                    self.assertIn(word, outcome.out)

    def test_json_adds_up(self):
        report = json.loads(hearth("show", TINY, "--json").out)
        self.assertEqual(set(report["needs"]["layers"]), {"attention"})
        self.assertEqual(report["needs"]["trunk_parameters"], report["parameters"])
        self.assertEqual(report["needs"]["state_bytes_per_sequence"], 0)
        self.assertEqual(report["architecture"], "llama")
        self.assertTrue(report["is_supported"])
        self.assertFalse(report["has_chat_template"])
        self.assertEqual(report["tensor_bytes"], sum(tensor["bytes"] for tensor in report["tensors"]))
        self.assertEqual(report["tensor_bytes"], 4 * report["parameters"])
        self.assertEqual(report["types"]["F32"]["tensors"], len(report["tensors"]))
        self.assertEqual(report["metadata"]["tokenizer.ggml.tokens"]["element_type"], "string")

    def test_parts_can_be_chosen(self):
        self.assertEqual(set(json.loads(hearth("show", TINY, "--json", "--tensors").out)), {"tensors"})
        self.assertEqual(set(json.loads(hearth("show", TINY, "--json", "--metadata").out)), {"metadata"})

    def test_works_without_tensors_and_for_unknown_architectures(self):
        model = self.file(
            "other.gguf",
            gguf_without_tensors({"general.architecture": "marvin", "general.name": "a\x1b[31mb", "list": ["x"] * 99}),
        )
        outcome = hearth("show", model)
        self.assertEqual(outcome.code, 0)
        self.assertIn("marvin (cannot be run here)", outcome.out)
        self.assertIn("99 x string", outcome.out)
        self.assertNotIn("\x1b", outcome.out, "a file cannot send a terminal control sequences")
        report = json.loads(hearth("show", model, "--json").out)
        self.assertEqual((report["is_supported"], report["parameters"], report["tensors"]), (False, 0, []))


class Tokenize(Files):
    def test_ids_become_the_text_again(self):
        for text in ("the the", "Grüße, 世界 \U0001f600", " leading", "a\nb"):
            ids = hearth("tokenize", TINY, "--ids", text=text)
            self.assertEqual(ids.code, 0, ids.talk)
            self.assertEqual(hearth("tokenize", TINY, "--decode", ids.out).out, text + "\n")

    def test_json_has_ids_and_pieces(self):
        report = json.loads(hearth("tokenize", TINY, "the", "--json").out)
        self.assertEqual(len(report["tokens"]), len(report["pieces"]))
        self.assertEqual(report["tokens"][1:], json.loads(hearth("tokenize", TINY, "the", "--json", "--no-bos").out)["tokens"])  # fmt: skip

    def test_control_tokens_come_from_trusted_text_only(self):
        plain = hearth("tokenize", TINY, "</s>", "--ids", "--no-bos").out.split()
        special = hearth("tokenize", TINY, "</s>", "--ids", "--no-bos", "--special").out.split()
        self.assertGreater(len(plain), 1)
        self.assertEqual(special, ["2"])

    def test_works_on_a_vocabulary_without_tensors(self):
        # The keys of a model, without its tensors.
        data = TINY.read_bytes()
        with_keys_only = data[:8] + (0).to_bytes(8, "little") + data[16:]
        model = self.file("vocab.gguf", with_keys_only)
        self.assertEqual(
            hearth("tokenize", model, "the the", "--ids").out, hearth("tokenize", TINY, "the the", "--ids").out
        )
        self.assertEqual(json.loads(hearth("show", model, "--json").out)["tensors"], [])


class Synth(Files):
    def test_synthetic_models_answer_the_same_on_both_backends(self):
        for kind in ("Q4_K_M", "MXFP4", "BF16"):
            with self.subTest(kind):
                model = self.folder / f"{kind}.gguf"
                written = hearth("synth", "llama-tiny", model, "--type", kind, "--json")
                self.assertEqual(written.code, 0, written.talk)
                self.assertEqual(json.loads(written.out)["tensor_bytes"],
                                 json.loads(hearth("show", model, "--json").out)["tensor_bytes"])  # fmt: skip
                options = ("hi", "--temperature", 0, "-n", 4, "--json")
                fast = hearth("run", model, *options)
                slow = hearth("run", model, *options, "--device", "reference")
                self.assertEqual((fast.code, slow.code), (0, 0), fast.talk + slow.talk)
                self.assertEqual(json.loads(fast.out)["tokens"], json.loads(slow.out)["tokens"])

    def test_replaces_a_file_only_when_told_to(self):
        model = self.file("kept.gguf", b"precious")
        refused = hearth("synth", "llama-tiny", model)
        self.assertEqual((refused.code, model.read_bytes()), (1, b"precious"))
        self.assertIn("kept.gguf: exists already", refused.talk)
        replaced = hearth("synth", "llama-tiny", model, "--force")
        self.assertEqual(replaced.code, 0, replaced.talk)
        self.assertIn("kept.gguf: llama-tiny Q4_K_M", replaced.out)
        self.assertEqual(hearth("synth", "llama-tiny", self.folder, "--force").code, 1)

    def test_unknown_names_are_answered_with_the_known_ones(self):
        model = self.folder / "none.gguf"
        self.assertIn("llama-tiny, llama-1b", hearth("synth", "llama", model).talk)
        self.assertIn("Q4_K_S, Q4_K_M", hearth("synth", "llama-tiny", model, "--type", "Q4").talk)
        self.assertFalse(model.exists())


class Measure(Files):
    def test_bench_checks_then_measures(self):
        outcome = hearth("bench", TINY, "-p", 32, "-n", 16, "-r", 2, "--json")
        self.assertEqual(outcome.code, 0, outcome.talk)
        report = json.loads(outcome.out)
        self.assertEqual((report["checked_tokens"], report["rounds"]), (64, 2))
        for name in ("prefill_tokens_per_s", "decode_tokens_per_s", "read_stream_bytes_per_s"):
            quantiles = report[name]
            self.assertGreater(quantiles["p10"], 0)
            self.assertLessEqual(quantiles["p10"], quantiles["median"])
            self.assertLessEqual(quantiles["median"], quantiles["p90"])
        weights = json.loads(hearth("show", TINY, "--json").out)["tensor_bytes"]
        self.assertGreater(report["bytes_per_step"], weights / 2)
        self.assertLess(report["bytes_per_step"], 2 * weights)

    def test_bench_decodes_behind_what_was_there_before(self):
        at = {}
        for depth in (0, 20):
            outcome = hearth("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "-d", depth, "--no-check", "--json")
            at[depth] = json.loads(outcome.out)
        self.assertEqual(at[20]["depth"], 20)
        self.assertGreater(at[20]["bytes_per_step"], at[0]["bytes_per_step"])
        self.assertGreater(at[20]["decode_tokens_per_s"]["median"], 0)

    def test_bench_decodes_several_sequences_at_once(self):
        reports = {}
        for parallel in (1, 3):
            outcome = hearth("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "-d", 20, "--parallel", parallel, "--json")
            self.assertEqual(outcome.code, 0, outcome.talk)
            reports[parallel] = json.loads(outcome.out)
            self.assertEqual(reports[parallel]["parallel"], parallel)
            self.assertGreater(reports[parallel]["decode_tokens_per_s"]["median"], 0)
            self.assertGreater(reports[parallel]["launches_per_step"], 0)
        self.assertEqual(reports[3]["checked_tokens"], 3 * 22)
        weights = json.loads(hearth("show", TINY, "--json").out)["tensor_bytes"]
        more = reports[3]["bytes_per_step"] - reports[1]["bytes_per_step"]
        self.assertGreater(more, 0, "three caches")
        self.assertLess(more, weights, "the weights once")

    def test_bench_samples_if_asked_to(self):
        outcome = hearth("bench", TINY, "-p", 8, "-n", 40, "-r", 1, "--temperature", 2, "--top-k", 9, "--json")
        self.assertEqual(outcome.code, 0, outcome.talk)
        report = json.loads(outcome.out)
        self.assertEqual((report["temperature"], report["checked_tokens"]), (2, 64))
        self.assertIn("(default: 0)", hearth("bench", "--help").out)
        outcome = hearth("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "--no-check", "--temperature", 0.5)
        self.assertIn("decode 4, sampled", outcome.out)

    def test_bench_prints_for_people(self):
        outcome = hearth("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "--no-check")
        self.assertEqual(outcome.code, 0, outcome.talk)
        for word in ("prefill 8", "decode 4", "tokens/s", "bytes per step", "GB/s"):
            self.assertIn(word, outcome.out)
        outcome = hearth("bench", TINY, "-p", 8, "-n", 4, "-r", 1, "-d", 9, "--no-check", "--parallel", 2)
        self.assertIn("decode 2 x 4 at 9", outcome.out)

    def test_perplexity_is_what_the_reference_finds(self):
        text = self.file("text.txt", ("the river and the " * 60).encode())
        found = json.loads(hearth("perplexity", TINY, text, "-c", 64, "--json").out)
        expected = json.loads(hearth("perplexity", TINY, text, "-c", 64, "--json", "--device", "reference").out)
        self.assertAlmostEqual(found["perplexity"], expected["perplexity"], delta=1e-4 * expected["perplexity"])
        self.assertEqual(found["n_scored"], found["n_contexts"] * 31)
        plain = hearth("perplexity", TINY, text, "-c", 64)
        self.assertRegex(plain.out, r"^perplexity \d+\.\d{4} \+- \d+\.\d{4} \(\d+ tokens scored")
        self.assertEqual(plain.talk, "", "progress is for terminals")

    def test_perplexity_needs_enough_text(self):
        text = self.file("short.txt", b"the")
        outcome = hearth("perplexity", TINY, text)
        self.assertEqual(outcome.code, 1)
        self.assertIn("short.txt", outcome.talk)


class Errors(Files):
    def assert_one_line(self, outcome, code, *words):
        self.assertEqual(outcome.code, code)
        self.assertEqual(outcome.out, "")
        self.assertRegex(outcome.talk, r"^hearth: [^\n]+\n$")
        for word in words:
            self.assertIn(word, outcome.talk)

    def test_a_missing_file_is_named(self):
        for command in ("run", "show", "tokenize", "bench"):
            with self.subTest(command):
                self.assert_one_line(hearth(command, "no/such.gguf"), 1, "no/such.gguf")

    def test_an_unknown_name_says_where_it_was_looked_for(self):
        outcome = hearth("show", "nosuchmodel", environment={"XDG_CACHE_HOME": str(self.folder)})
        self.assert_one_line(outcome, 1, "'nosuchmodel'", str(self.folder))

    def test_a_name_finds_a_cached_model(self):
        cache = self.folder / "hearth" / "models"
        cache.mkdir(parents=True)
        (cache / "Tiny-Model.F32.gguf").write_bytes(TINY.read_bytes())
        outcome = hearth("show", "tinymodel", environment={"XDG_CACHE_HOME": str(self.folder)})
        self.assertEqual(outcome.code, 0, outcome.talk)

    def test_a_file_that_is_no_model_is_refused(self):
        for name, data in {"text.gguf": b"not a model at all", "empty.gguf": b"", "cut.gguf": TINY.read_bytes()[:5000]}.items():  # fmt: skip
            with self.subTest(name):
                self.assert_one_line(hearth("run", self.file(name, data), "hi"), 1, name)

    def test_a_folder_is_refused(self):
        self.assert_one_line(hearth("show", f"{self.folder}/"), 1)

    def test_an_unknown_architecture_names_the_known_ones(self):
        model = self.file("other.gguf", gguf_without_tensors({"general.architecture": "marvin"}))
        self.assert_one_line(hearth("run", model, "hi"), 1, "'marvin'", "gemma3", "llama")

    def test_bad_values_are_named(self):
        self.assert_one_line(hearth("run", TINY, "x", "--raw", "--top-p", 2), 1, "top_p")
        self.assert_one_line(hearth("run", TINY, "x", "--raw", "--logit-bias", "x"), 1, "ID=VALUE")
        self.assert_one_line(hearth("run", TINY, "x", "--raw", "--stop", ""), 1, "--stop")
        self.assert_one_line(hearth("run", TINY, "x", "--temperature", "warm"), 2, "--temperature", "hearth run --help")
        self.assert_one_line(hearth("run", TINY, "x", "--nonsense"), 2, "--nonsense")
        self.assert_one_line(hearth("bench", TINY, "--parallel", 1025), 2, "--parallel", "1024", "hearth bench --help")

    def test_bench_refuses_sampling_that_cannot_be(self):
        self.assert_one_line(hearth("bench", TINY, "--no-check", "--top-p", 2), 1, "top_p", "2")

    def test_more_sequences_than_fit_into_memory_are_an_error(self):
        outcome = hearth("bench", TINY, "--no-check", "--parallel", 1000, "-d", 1000000)
        self.assert_one_line(outcome, 1, "KV cache", "of 1000 sequences")
        self.assert_one_line(hearth("dance"), 2, "'dance'", "perplexity")

    def test_an_empty_prompt_is_refused(self):
        for template in ("{# says nothing #}", "the {{ messages[0].content }}"):
            model = self.file("chat.gguf", with_chat_template(TINY, template))
            self.assert_one_line(hearth("run", model, text=""), 1, "the prompt is empty")
            self.assert_one_line(hearth("run", model, ""), 1, "the prompt is empty")

    def test_standard_input_that_cannot_be_read_is_an_error(self):
        folder = os.open("/", os.O_RDONLY)
        done = subprocess.run([PROGRAM, "run", TINY, "--raw"], stdin=folder, capture_output=True, text=True)
        os.close(folder)
        self.assertEqual((done.returncode, done.stderr), (1, "hearth: standard input: cannot be read\n"))

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "show", TINY], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)


class General(unittest.TestCase):
    def test_help_and_version_go_to_stdout(self):
        for arguments in (["--help"], ["--version"], ["run", "--help"]):
            outcome = hearth(*arguments)
            self.assertEqual((outcome.code, outcome.talk), (0, ""))
            self.assertIn("hearth", outcome.out)


if __name__ == "__main__":
    unittest.main()
