"""What the end-to-end tests share: running the real `hearth`, and small model files. The first argument of every
test script is the program."""

import os
import pathlib
import struct
import subprocess
import sys
from dataclasses import dataclass

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "hearth"
TESTS = pathlib.Path(__file__).resolve().parents[1]
TINY_MODELS = sorted((TESTS / "golden" / "arch").glob("*.gguf"))
TINY = TESTS / "golden" / "arch" / "llama.gguf"

GGUF_HEADER = struct.Struct("<4sIQQ")  # magic, version, tensors, keys
STRING = 8  # the number of a string among the value types
ARRAY = 9


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    talk: str


def hearth(*arguments, text="", environment=None):
    """Runs the program with `text` on standard input; what it prints must be UTF-8."""
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=text.encode(),
        capture_output=True,
        env={**os.environ, **(environment or {})},
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_key(key, value):
    """A key whose value is a string, or a list of strings."""
    if isinstance(value, str):
        return gguf_string(key) + struct.pack("<I", STRING) + gguf_string(value)
    head = struct.pack("<IIQ", ARRAY, STRING, len(value))
    return gguf_string(key) + head + b"".join(map(gguf_string, value))


def gguf_without_tensors(keys):
    """The bytes of a GGUF file that has these keys alone."""
    return GGUF_HEADER.pack(b"GGUF", 3, 0, len(keys)) + b"".join(gguf_key(*item) for item in keys.items())


def with_chat_template(model, template):
    """The bytes of `model` with a chat template. The new key takes a multiple of the alignment, so that all that
    follows it moves without a change."""
    data = model.read_bytes()
    magic, version, n_tensors, n_keys = GGUF_HEADER.unpack_from(data)
    key = "tokenizer.chat_template"
    padding = -len(gguf_key(key, template + "{##}")) % 32
    added = gguf_key(key, template + "{#" + " " * padding + "#}")
    return GGUF_HEADER.pack(magic, version, n_tensors, n_keys + 1) + added + data[GGUF_HEADER.size :]
