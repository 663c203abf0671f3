#!/usr/bin/env python3
"""Writes messages.tsv: make_golden.py FOLDER-OF-METAL-CPP

For every message in src/backend/gpu/metal/messages.h, its types as metal-cpp, Apple's headers for C++, declares it.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parents[2] / "src" / "backend" / "gpu" / "metal" / "messages.h"

CODES = {
    "void": "v", "bool": "B", "uint8_t": "C", "NS::UInteger": "Q", "uint64_t": "Q", "NS::Integer": "q", "MTL::Size": "{?=QQQ}",
    "NS::Range": "{_NSRange=QQ}", "char*": "*", "void*": "^v", "NS::Error**": "^@",
}  # fmt: skip
# metal-cpp has templates of its own for these; types from the reference page of NSObject.
BY_HAND = {("NSObject", "new"): "@", ("NSObject", "respondsToSelector:"): "B :"}

DEFINITION = re.compile(
    r"_(?:MTL|NS)_INLINE (?P<result>[\w:* ]+?) ?(?P<space>MTL|NS)::(?P<receiver>\w+)::\w+\((?P<parameters>[^{]*)\)(?: const)?\n"
    r"\{[^{}]*?_PRIVATE_SEL\((?P<selector>\w+)\)"
)


def read_selectors(text):
    return dict(re.findall(r"_PRIVATE_DEF_SEL\((\w+),\s*\"([^\"]+)\"\)", text))


def read_enumerations(text):
    """Underlying type by name; the first argument of the macro is the type."""
    found = re.findall(r"_(MTL|NS)_(?:ENUM|OPTIONS)\(([\w:]+), (\w+)\)", text)
    return {name: kind for space, kind, short in found for name in (short, f"{space}::{short}")}


def code(declared, enumerations):
    if "(^" in declared:
        return "@?"
    kind = re.sub(r"\s*\*", "*", declared.strip()).removeprefix("const ")
    kind = enumerations.get(kind, kind)
    if kind in CODES:
        return CODES[kind]
    if re.fullmatch(r"(?:(?:MTL|NS)::)?[A-Z]\w+\*", kind):
        return "@"
    return f"({kind})"


def without_name(parameter):
    return parameter if "(^" in parameter else re.sub(r"\b\w+$", "", parameter.strip())


def main(folder):
    files = sorted(pathlib.Path(folder).rglob("*.hpp"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    selectors = read_selectors(text)
    enumerations = read_enumerations(text)
    declared = dict(BY_HAND)
    for match in DEFINITION.finditer(text):
        parameters = [without_name(each) for each in re.split(r",(?![^(]*\))", match["parameters"]) if each.strip()]
        codes = [code(each, enumerations) for each in [match["result"], *parameters]]
        key = (match["space"] + match["receiver"], selectors.get(match["selector"]))
        declared.setdefault(key, " ".join(codes))
    messages = re.findall(r"^  X\((\w+), \w+, \"([^\"]+)\"", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    missing = [message for message in messages if message not in declared]
    if missing:
        sys.exit(f"not declared: {missing}")
    lines = [f"{receiver}\t{selector}\t{declared[receiver, selector]}\n" for receiver, selector in sorted(messages)]
    (HERE / "messages.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
