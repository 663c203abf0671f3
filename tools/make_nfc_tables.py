#!/usr/bin/env python3
"""Writes src/tokenizer/nfc_tables.cpp from Python's `unicodedata`, Unicode 14 (Python 3.11).

    python3 tools/make_nfc_tables.py > src/tokenizer/nfc_tables.cpp

tests/tokenizer/nfc_test.cpp compares what normalization makes of every character with checksums.
"""

import sys
import unicodedata

HANGUL = range(0xAC00, 0xD7A4)  # composed by arithmetic


def parts(code):
    """The canonical decomposition in one step: one or two characters, or none."""
    mapping = unicodedata.decomposition(chr(code))
    return [] if not mapping or mapping.startswith("<") else [int(part, 16) for part in mapping.split()]


def class_ranges():
    """[first, last, combining class], of classes other than 0."""
    ranges = []
    for code in range(sys.maxunicode + 1):
        combining_class = unicodedata.combining(chr(code))
        if combining_class == 0:
            continue
        if ranges and ranges[-1][1:] == [code - 1, combining_class]:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, combining_class])
    return ranges


def print_rows(kind, name, rows, per_line):
    print(f"const std::array<{kind}, {len(rows)}> {name}{{{{")
    for start in range(0, len(rows), per_line):
        print("  " + ", ".join(rows[start : start + per_line]) + ",")
    print("}};\n")


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    decomposed = {code: parts(code) for code in range(sys.maxunicode + 1) if code not in HANGUL}
    decomposed = {code: found for code, found in decomposed.items() if found}
    # What nfc.cpp relies on.
    assert all(len(found) <= 2 and (len(found) < 2 or not parts(found[1])) for found in decomposed.values())

    singles = [f"{{0x{code:x}, 0x{found[0]:x}}}" for code, found in decomposed.items() if len(found) == 1]
    pairs, kept_apart = [], []
    for code, found in decomposed.items():
        if len(found) == 2:
            composes = unicodedata.normalize("NFC", chr(code)) == chr(code)
            row = f"{{0x{code:x}, 0x{found[0]:x}, 0x{found[1]:x}}}"
            (pairs if composes else kept_apart).append(row)
    classes = [f"{{0x{first:x}, 0x{last:x}, {number}}}" for first, last, number in class_ranges()]

    print('#include "tokenizer/nfc_tables.h"\n')
    print("// Written by tools/make_nfc_tables.py.")
    print("namespace hearth::tokenizer {\n")
    print("// clang-format off")
    print_rows("CombiningClass", "combining_classes", classes, 4)
    print_rows("Single", "nfc_singles", singles, 6)
    print_rows("Pair", "nfc_pairs", pairs, 4)
    print_rows("Pair", "nfc_pairs_kept_apart", kept_apart, 4)
    print("// clang-format on\n")
    print("}  // namespace hearth::tokenizer")


if __name__ == "__main__":
    main()
