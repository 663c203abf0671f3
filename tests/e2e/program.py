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


class GgufFile:
    """A GGUF file taken apart, to be written with other keys and tensors. The alignment is the usual 32."""

    NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    ALIGNMENT = 32

    def __init__(self, path):
        self.data = path.read_bytes()
        _, _, n_tensors, n_keys = GGUF_HEADER.unpack_from(self.data)
        self.at = GGUF_HEADER.size
        self.keys = {}  # name: type and value, as they are stored
        for _ in range(n_keys):
            name = self.take_string()
            begin = self.at
            self.skip_value(self.take("I"))
            self.keys[name] = self.data[begin : self.at]
        directory = [self.take_entry() for _ in range(n_tensors)]
        start = self.at + -self.at % self.ALIGNMENT
        ends = [offset for _, _, offset in directory[1:]] + [len(self.data) - start]
        self.tensors = {  # name: shape and type, and the data, padded
            name: (head, self.data[start + offset : start + end])
            for (name, head, offset), end in zip(directory, ends)
        }

    def take(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def take_string(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def skip_value(self, kind):
        if kind == STRING:
            self.take_string()
        elif kind == ARRAY:
            element, count = self.take("I"), self.take("Q")
            for _ in range(count):
                self.skip_value(element)
        else:
            self.take(self.NUMBERS[kind])

    def take_entry(self):
        name = self.take_string()
        begin = self.at
        n_dimensions = self.take("I")
        self.at += 8 * n_dimensions + 4
        return name, self.data[begin : self.at], self.take("Q")

    def count(self, key):
        return struct.unpack("<II", self.keys[key])[1]

    def set_count(self, key, value):
        self.keys[key] = struct.pack("<II", 4, value)

    def write(self, path):
        """The directory and the data in the order of `tensors`, whose last has padding too."""
        out = GGUF_HEADER.pack(b"GGUF", 3, len(self.tensors), len(self.keys))
        out += b"".join(gguf_string(name) + value for name, value in self.keys.items())
        offset = 0
        for name, (head, data) in self.tensors.items():
            out += gguf_string(name) + head + struct.pack("<Q", offset)
            offset += len(data)
        out += bytes(-len(out) % self.ALIGNMENT)
        path.write_bytes(out + b"".join(data for _, data in self.tensors.values()))
