"""A chat at a terminal, with Ctrl-C: chat_test.py PATH_OF_HEARTH [unittest options]."""

import os
import pathlib
import pty
import select
import tempfile
import time
import unittest

from program import PROGRAM, TINY, with_chat_template

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
TIMEOUT_S = 60
CTRL_C = "\x03"
CTRL_D = "\x04"


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments):
        self.output = ""
        self.child, self.descriptor = pty.fork()
        if self.child == 0:
            os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def read_some(self, seconds):
        """False when the program has closed the terminal."""
        if select.select([self.descriptor], [], [], seconds)[0]:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:  # Linux: the other end is closed
                data = b""
            self.output += data.decode(errors="replace")
            return bool(data)
        return True

    def wait_for(self, text, since=0):
        """Reads until `text` appears at or after `since`; returns the place behind it."""
        end = time.monotonic() + TIMEOUT_S
        while text not in self.output[since:]:
            if time.monotonic() > end or not self.read_some(1):
                raise AssertionError(f"expected {text!r} in {self.output[since:]!r}")
        return self.output.index(text, since) + len(text)

    def end(self):
        """The exit code, once the program has ended by itself."""
        end = time.monotonic() + TIMEOUT_S
        while self.read_some(1) and time.monotonic() < end:
            pass
        _, status = os.waitpid(self.child, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


class Chat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name) / "chat.gguf"
        self.model.write_bytes(with_chat_template(TINY, TEMPLATE))

    def chat(self, *options):
        return Terminal("run", self.model, "--temperature", 0, *options)

    def test_answers_turn_after_turn_until_bye(self):
        terminal = self.chat("-n", 6, "--verbose")
        at = terminal.wait_for(">>> ")
        terminal.type("hello\n")
        at = terminal.wait_for("generation   6 tokens", at)
        first_prompt = self.prompt_tokens(terminal.output)
        at = terminal.wait_for(">>> ", at)
        terminal.type("again\n")
        at = terminal.wait_for(">>> ", terminal.wait_for("generation   6 tokens", at))
        self.assertGreater(self.prompt_tokens(terminal.output), first_prompt, "the history is part of the prompt")
        terminal.type("/clear\nhello\n")
        terminal.wait_for("generation   6 tokens", at)
        self.assertEqual(self.prompt_tokens(terminal.output), first_prompt)
        terminal.type("/bye\n")
        self.assertEqual(terminal.end(), 0)

    @staticmethod
    def prompt_tokens(output):
        return int(output.rsplit("prompt ", 1)[1].split()[0])

    def test_commands_and_messages_of_several_lines(self):
        terminal = self.chat("-n", 2)
        at = terminal.wait_for(">>> ")
        terminal.type("/help\n")
        at = terminal.wait_for("/system TEXT", at)
        terminal.type("/nonsense\n")
        at = terminal.wait_for("is not a command", at)
        terminal.type('"""one\n')
        at = terminal.wait_for("... ", at)
        terminal.type('two"""\n')
        terminal.wait_for(">>> ", at)
        terminal.type(CTRL_D)
        self.assertEqual(terminal.end(), 0)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        # Without an end token and with a large context, the answer would go on for minutes.
        terminal = self.chat("--logit-bias", "2=-100", "--context", 1_000_000, "--verbose")
        at = terminal.wait_for(">>> ")
        terminal.type("hello\n")
        terminal.wait_for("hello\r\n", at)
        length = len(terminal.output)
        while len(terminal.output) < length + 20:  # the answer has begun
            self.assertTrue(terminal.read_some(TIMEOUT_S))
        terminal.type(CTRL_C)
        at = terminal.wait_for(">>> ", terminal.wait_for("ended by interrupted", length))
        terminal.type("/bye\n")
        self.assertEqual(terminal.end(), 0)

    def test_ctrl_c_at_the_prompt_says_how_to_leave(self):
        terminal = self.chat()
        at = terminal.wait_for(">>> ")
        terminal.type("half a line" + CTRL_C)
        at = terminal.wait_for(">>> ", terminal.wait_for("/bye", at))
        terminal.type("/system\n")
        terminal.wait_for("there is no system message", at)
        terminal.type("/bye\n")
        self.assertEqual(terminal.end(), 0)

    def test_ctrl_c_ends_a_single_answer_with_130(self):
        terminal = self.chat("hello", "--logit-bias", "2=-100", "--context", 1_000_000)
        while len(terminal.output) < 100:
            self.assertTrue(terminal.read_some(TIMEOUT_S))
        terminal.type(CTRL_C)
        self.assertEqual(terminal.end(), 130)

    def test_a_message_too_long_for_the_context_is_told_and_forgotten(self):
        terminal = self.chat("--context", 64, "-n", 2)
        at = terminal.wait_for(">>> ")
        terminal.type("x" * 80 + "\n")
        at = terminal.wait_for(">>> ", terminal.wait_for("but the context holds 64", at))
        terminal.type("y\n")
        at = terminal.wait_for(">>> ", at)
        self.assertNotIn("but the context", terminal.output[at:])
        terminal.type("/bye\n")
        self.assertEqual(terminal.end(), 0)


if __name__ == "__main__":
    unittest.main()
