"""Facts for dialogues, found in the documentation by rule: what words mean, what commands do, short functions."""

import ast
import dataclasses
import json
import re

import places

ENTRY = re.compile(r"^(?P<word>[A-Za-z][A-Za-z' -]{1,30})\n\s+(?P<kind>n|v|adj|adv)(?: 1)?: (?P<gloss>.*)", re.DOTALL)
KINDS = {"n": "noun", "v": "verb", "adj": "adjective", "adv": "adverb"}
NAME = re.compile(r"^NAME\n(?P<name>[a-z][\w.-]{1,24})(?:\(\d\))? (?:--?|\\-) (?P<purpose>[^\n]{8,110})")
GERMAN_NAME = re.compile(r"^BEZEICHNUNG\n(?P<name>[a-z][\w.-]{1,24}) - (?P<purpose>[^\n]{8,110})")


@dataclasses.dataclass(frozen=True)
class Meaning:
    word: str
    kind: str
    gloss: str
    synonyms: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Command:
    name: str
    purpose: str


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    purpose: str
    code: str


@dataclasses.dataclass
class Facts:
    meanings: list[Meaning]
    commands: list[Command]
    german: list[Command]
    functions: list[Function]
    sentences: list[str]


def documents(domain: str, split: str):
    with (places.TEXT / f"{domain}.{split}.jsonl").open() as file:
        for line in file:
            yield json.loads(line)


def _meaning(entry: str) -> Meaning | None:
    found = ENTRY.match(entry)
    if not found:
        return None
    first = re.split(r"\n\s+(?:\d+|[a-z]+ \d+): ", found["gloss"])[0]
    first = " ".join(first.split())
    names = re.search(r"\[syn: ([^\]]*)\]", first)
    synonyms = re.findall(r"\{([^}]*)\}", names[1]) if names else []
    gloss = re.sub(r"\s*\[[^\]]*\]|[{}]|\s*\([^)]*\)", "", first).split(";")[0].strip(" ;:")
    if not 8 <= len(gloss) <= 160:
        return None
    return Meaning(
        found["word"],
        KINDS[found["kind"]],
        gloss,
        tuple(name for name in synonyms if name.lower() != found["word"].lower())[:3],
    )


def _functions(source: str):
    """Functions of at most twelve lines, without the docstring whose first line says what they do."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or len(node.body) < 2:
            continue
        purpose = (ast.get_docstring(node) or "").split("\n")[0].strip()
        if not 15 <= len(purpose) <= 100 or node.name.startswith("test"):
            continue
        node.body = node.body[1:]
        code = ast.unparse(node)
        if code.count("\n") < 12 and len(code) < 500:
            yield Function(node.name, purpose, code)


def _sentences(text: str):
    for paragraph in re.split(r"\n\n", text):
        joined = " ".join(paragraph.split())
        if re.fullmatch(r"[A-Z][A-Za-z ,'-]{40,140}\.", joined.split(". ")[0].rstrip(".") + "."):
            yield joined.split(". ")[0].rstrip(".") + "."


def gather(split: str) -> Facts:
    commands = [
        Command(*found.group("name", "purpose")) for text in documents("manpage", split) if (found := NAME.match(text))
    ]
    german = [
        Command(*found.group("name", "purpose"))
        for text in documents("german", split)
        if (found := GERMAN_NAME.match(text))
    ]
    return Facts(
        [meaning for entry in documents("dictionary", split) if (meaning := _meaning(entry))],
        commands,
        german,
        [function for text in documents("python", split) for function in _functions(text)],
        [sentence for text in documents("manual", split) for sentence in _sentences(text)],
    )
