#!/usr/bin/env python3
"""Compares src/layers.txt with the code: check_layers.py [REPOSITORY]

src/layers.txt has one line per folder of src/, "folder: folders it may include", ordered so that a folder
names only earlier ones; what those may include is included. Checked against it:
  - every folder of src/ has its line, and the other way round;
  - every #include in src/ and app/ goes to an allowed folder, and to a file that exists;
  - every hearth_library() links only allowed folders, and all that its files include;
  - a library with a folder of its own is included there only (`HOMES`).
"""

import pathlib
import re
import sys

SOURCE_SUFFIXES = {".h", ".cpp", ".inl", ".cu", ".mm", ".metal"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
LIBRARY = re.compile(r"hearth_library\(\s*(\w+)([^)]*)\)")
COMMENT = re.compile(r"#[^\n]*")

# Libraries that may be included only below these paths, so that they stay replaceable.
HOMES = {
    "fmt/": ("src/base/format.h",),
    "tl/": ("src/base/result.h",),
    "format": ("src/base/format.h",),
    "expected": ("src/base/result.h",),
    "pcre2.h": ("src/tokenizer/",),
    "CLI/": ("app/",),
    "nlohmann/": ("app/", "src/formats/json/", "src/formats/safetensors/", "src/model/huggingface/"),
}


def read_layers(text):
    """({folder: folders it may include directly}, complaints)"""
    layers, complaints = {}, []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        folder, colon, below = line.partition(":")
        folder, below = folder.strip(), below.split()
        if not colon:
            complaints.append(f"src/layers.txt:{number}: expected 'folder: folders', found '{line}'")
            continue
        if folder in layers:
            complaints.append(f"src/layers.txt:{number}: {folder} has a second line")
        for other in below:
            if other != "*" and other not in layers:
                complaints.append(f"src/layers.txt:{number}: {folder} names {other}, which has no earlier line")
        layers[folder] = list(layers) if below == ["*"] else [other for other in below if other in layers]
    return layers, complaints


def reachable(graph, start):
    """`start` and everything below it."""
    found, todo = set(), [start]
    while todo:
        folder = todo.pop()
        if folder not in found:
            found.add(folder)
            todo.extend(graph.get(folder, ()))
    return found


def source_files(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES)


def includes(path):
    """(quote or angle bracket, included name) of one file."""
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def check_folders(root, layers):
    found = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    listed = set(layers) - {"app"}
    for folder in sorted(found - listed):
        yield f"src/{folder}: has no line in src/layers.txt"
    for folder in sorted(listed - found):
        yield f"src/layers.txt: names {folder}, but there is no folder src/{folder}"


def check_include(root, layers, folder, path, name):
    """Complaints about `#include "name"` in a file of `folder`."""
    place = path.relative_to(root)
    target = name.split("/")[0]
    if (root / "src" / name).is_file():
        if target not in reachable(layers, folder):
            allowed = ", ".join(layers[folder]) or "nothing"
            yield f'{place}: includes "{name}", but src/layers.txt allows {folder} only {allowed}'
    elif folder != "app" or not ((root / name).is_file() or (path.parent / name).is_file()):
        yield f'{place}: includes "{name}": there is no src/{name}'


def check_includes(root, layers):
    for folder in layers:
        for path in source_files(root / "app" if folder == "app" else root / "src" / folder):
            for bracket, name in includes(path):
                if bracket == '"':
                    yield from check_include(root, layers, folder, path, name)


def linked_folders(root, folder):
    """Folders that hearth_library() links for `folder`, or None without such a call."""
    lists = root / "src" / folder / "CMakeLists.txt"
    text = COMMENT.sub("", lists.read_text(encoding="utf-8")) if lists.is_file() else ""
    call = next((body for name, body in LIBRARY.findall(text) if name == folder), None)
    return None if call is None else re.findall(r"hearth::(\w+)", call)


def check_links(root, layers):
    links = {folder: linked_folders(root, folder) for folder in layers if folder != "app"}
    graph = {folder: layers[folder] if linked is None else linked for folder, linked in links.items()}
    for folder, linked in links.items():
        place = f"src/{folder}/CMakeLists.txt"
        files = source_files(root / "src" / folder)
        if linked is None:
            if any(path.suffix == ".cpp" for path in files):
                yield f"{place}: there is no hearth_library({folder} ...) for its source files"
            continue
        for other in linked:
            if other not in reachable(layers, folder):
                allowed = ", ".join(layers[folder]) or "nothing"
                yield f"{place}: links hearth::{other}, but src/layers.txt allows {folder} only {allowed}"
        included = {name.split("/")[0] for path in files for bracket, name in includes(path) if bracket == '"'}
        for other in sorted((included & set(layers)) - reachable(graph, folder)):
            yield f"{place}: the sources include {other}/, but hearth_library({folder}) does not link hearth::{other}"


def check_homes(root):
    for path in source_files(root / "src") + source_files(root / "app"):
        place = str(path.relative_to(root))
        for bracket, name in includes(path):
            for library, homes in HOMES.items():
                matches = name.startswith(library) if library.endswith("/") else name == library
                if bracket == "<" and matches and not place.startswith(homes):
                    yield f"{place}: includes <{name}>, whose only place is {' or '.join(homes)}"


def check(root):
    """Every complaint about the repository at `root`, as sentences."""
    layers, complaints = read_layers((root / "src" / "layers.txt").read_text(encoding="utf-8"))
    if complaints:
        return complaints
    return [
        *check_folders(root, layers),
        *check_includes(root, layers),
        *check_links(root, layers),
        *check_homes(root),
    ]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    complaints = check(root)
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
