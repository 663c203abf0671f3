#!/usr/bin/env python3
"""Writes checksums.golden and sequences.golden by Python's `unicodedata`; see PROVENANCE.md."""

import hashlib
import pathlib
import random
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
PLANES = (0, 1, 2, 14)  # the others have no assigned characters, or private ones
N_SEQUENCES = 800


def nfc(text):
    return unicodedata.normalize("NFC", text)


def characters():
    for plane in PLANES:
        codes = range(plane << 16, (plane + 1) << 16)
        yield from (chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def checksums():
    """Of what changes among all characters alone, behind a letter, and before marks: of all results, joined."""
    for before, behind in [("", ""), ("a", ""), ("", "\u0323\u0301")]:
        texts = (before + character + behind for character in characters())
        changed = "".join(nfc(text) for text in texts if nfc(text) != text)
        yield hashlib.sha256(changed.encode()).hexdigest()


def interesting():
    """Characters that change, compose or reorder, with their parts, and some that do nothing."""
    found = set("ab 1\n中あ😀")
    for character in characters():
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed != character or unicodedata.combining(character):
            found |= {character, *decomposed}
    syllables = [c for c in sorted(found) if 0xAC00 <= ord(c) < 0xD7A4]
    rest = sorted(found - set(syllables))
    return rest + syllables[::400]


def sequences():
    """Random ones; half of them from a few bases and marks that meet often."""
    rng = random.Random(1)
    all_letters = interesting()
    frequent = list("aeo\u00e5\u1ea1\u1100\u1161\u11a8\uac00\u0915\u093c\u0327\u0323\u0302\u0301\u0345\u0338\u212b\u0344")
    for number in range(N_SEQUENCES):
        letters = frequent if number % 2 else all_letters
        yield "".join(rng.choice(letters) for _ in range(rng.randint(1, 9)))


def codes(text):
    return " ".join(f"{ord(character):04X}" for character in text)


def write(name, lines):
    (HERE / name).write_text("".join(line + "\n" for line in lines))


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    write("checksums.golden", checksums())
    write("sequences.golden", [f"{codes(text)};{codes(nfc(text))}" for text in sequences()])


if __name__ == "__main__":
    main()
