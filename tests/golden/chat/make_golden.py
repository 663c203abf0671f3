"""Renders conversations.json through chat templates with Jinja as transformers sets it up.

    python make_golden.py [folder of released templates]

Needs jinja2 3.1.6. Writes, next to this file:
  rendered/<template>.json   the full texts for the templates named in FULL
  snippets.json              what each line of snippets.txt renders
  fingerprints.txt           for every template: template, conversation, and the FNV-1a hash of the text,
                             or "raises" and the hash of the message, or "fails"
"""

import datetime
import json
import pathlib
import re
import sys

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 11, 29, 12, 34, 56)
SPECIAL_TOKENS = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "unk_token": "<|unk|>", "pad_token": "<|pad|>"}
FULL = ["smollm2", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen3.5-4B", "google-gemma-2-2b-it",
        "google-gemma-4-31B-it"]

SNIPPET_VARIABLES = {
    "text": "Hello, world", "unicode": "aé🌍bç", "numbers": [1, 2, 3],
    "user": {"name": "ann", "age": 31, "tags": ["x", "y"], "address": {"city": "Bern", "zip": None}},
    "users": [{"name": "bob", "age": 40, "tags": ["b"]}, {"name": "ann", "age": 31, "tags": ["a"]},
              {"name": "cid", "age": 31, "tags": ["c"]}],
    "shadow": {"items": [1], "get": 2},
    "tree": [{"name": "a", "children": [{"name": "b"}, {"name": "c", "children": [{"name": "d"}]}]}, {"name": "e"}],
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
}


class Raised(jinja2.exceptions.TemplateError):
    """The template called raise_exception."""


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def outcome(source, variables):
    """("text", text), ("raises", the template's own message) or ("fails", why)."""
    try:
        return "text", environment().from_string(source).render(**variables)
    except Raised as error:
        return "raises", str(error)
    except Exception as error:  # whatever Python raises, the template cannot render this
        return "fails", f"{type(error).__name__}: {error}"


def render(source, case):
    context = {"messages": case["messages"], "tools": case.get("tools"), "documents": case.get("documents"),
               "add_generation_prompt": case.get("add_generation_prompt", True)}
    return outcome(source, SPECIAL_TOKENS | case.get("variables", {}) | context)


def render_snippets():
    """Pairs of a template and what it renders."""
    results = []
    for line in (HERE / "snippets.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            escapes = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "u00a0": "\u00a0"}
            source = re.sub(r"\\(u00a0|[ntr\\])", lambda match: escapes[match[1]], line)
            kind, text = outcome(source, SNIPPET_VARIABLES)
            results.append({"template": source, kind: text})
    return results


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def main():
    write_json(HERE / "snippets.json", {"variables": SNIPPET_VARIABLES, "snippets": render_snippets()})
    cases = json.loads((HERE / "conversations.json").read_text())
    templates = {"smollm2": HERE / "smollm2.jinja"}
    if len(sys.argv) > 1:
        templates |= {path.stem: path for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja"))}
    lines = []
    for name, path in templates.items():
        results = {case["name"]: render(path.read_text(), case) for case in cases}
        lines += [f"{name} {case} {kind} {fnv1a(text) if kind != 'fails' else '-'}"
                  for case, (kind, text) in results.items()]
        if name in FULL:
            (HERE / "rendered").mkdir(exist_ok=True)
            full = {case: {kind: text} for case, (kind, text) in results.items() if kind != "fails"}
            write_json(HERE / "rendered" / f"{name}.json", full)
    (HERE / "fingerprints.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
