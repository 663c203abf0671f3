"""What tools/check_layers.py accepts and refuses, on small trees made here."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_layers  # noqa: E402  (found through the path above)

# A tree without a fault; each test changes one thing in it.
GOOD = {
    "src/layers.txt": "# folder: below\nbase:\ntensor: base\nquant: tensor\nchat: base\napp: *\n",
    "src/base/result.h": "#include <expected>\n",
    "src/base/assert.cpp": '#include "base/result.h"\n',
    "src/base/CMakeLists.txt": "hearth_library(base SOURCES assert.cpp DEPS Threads::Threads)\n",
    "src/tensor/shape.cpp": '#include "tensor/shape.h"\n',
    "src/tensor/shape.h": '#include "base/result.h"\n',
    "src/tensor/CMakeLists.txt": "hearth_library(tensor SOURCES shape.cpp DEPS hearth::base)\n",
    "src/quant/registry.cpp": '#include "tensor/shape.h"\n#include "base/result.h"\n',
    "src/quant/CMakeLists.txt": "hearth_library(quant SOURCES registry.cpp\n  DEPS hearth::tensor)\n",
    "src/chat/template.h": '#include "base/result.h"\n',
    "app/hearth/main.cpp": '#include "quant/registry.cpp"\n#include "commands.h"\n#include <CLI/CLI.hpp>\n',
    "app/hearth/commands.h": "",
}


def complaints(changes):
    """Complaints about GOOD with some files replaced or added."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in {**GOOD, **changes}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return check_layers.check(root)


class CheckLayers(unittest.TestCase):
    def test_accepts_a_tree_that_keeps_the_rules(self):
        self.assertEqual(complaints({}), [])

    def test_accepts_this_repository(self):
        self.assertEqual(check_layers.check(ROOT), [])

    def test_refuses_an_include_of_a_higher_folder(self):
        found = complaints({"src/base/bad.h": '  #  include "tensor/shape.h"\n'})
        self.assertIn(
            'src/base/bad.h: includes "tensor/shape.h", but src/layers.txt allows base only nothing', found
        )

    def test_refuses_an_include_of_a_sibling(self):
        found = complaints({"src/chat/bad.h": '#include "tensor/shape.h"\n'})
        self.assertEqual(
            found, ['src/chat/bad.h: includes "tensor/shape.h", but src/layers.txt allows chat only base']
        )

    def test_refuses_an_include_of_a_file_that_does_not_exist(self):
        found = complaints({"src/chat/bad.h": '#include "base/absent.h"\n'})
        self.assertEqual(found, ['src/chat/bad.h: includes "base/absent.h": there is no src/base/absent.h'])

    def test_refuses_an_include_relative_to_its_own_folder(self):
        found = complaints({"src/chat/bad.h": '#include "template.h"\n'})
        self.assertEqual(found, ['src/chat/bad.h: includes "template.h": there is no src/template.h'])

    def test_refuses_to_link_a_higher_folder(self):
        found = complaints(
            {"src/tensor/CMakeLists.txt": "hearth_library(tensor SOURCES x.cpp DEPS hearth::base hearth::quant)"}
        )
        self.assertEqual(
            found,
            ["src/tensor/CMakeLists.txt: links hearth::quant, but src/layers.txt allows tensor only base"],
        )

    def test_refuses_a_library_that_does_not_link_what_it_includes(self):
        found = complaints({"src/tensor/CMakeLists.txt": "hearth_library(tensor SOURCES shape.cpp)  # hearth::base"})
        self.assertIn(
            "src/tensor/CMakeLists.txt: the sources include base/, "
            "but hearth_library(tensor) does not link hearth::base",
            found,
        )

    def test_refuses_source_files_without_a_library(self):
        found = complaints({"src/quant/CMakeLists.txt": ""})
        self.assertEqual(
            found, ["src/quant/CMakeLists.txt: there is no hearth_library(quant ...) for its source files"]
        )

    def test_refuses_a_folder_without_a_line(self):
        found = complaints({"src/graph/op.h": ""})
        self.assertEqual(found, ["src/graph: has no line in src/layers.txt"])

    def test_refuses_a_line_without_a_folder(self):
        found = complaints({"src/layers.txt": GOOD["src/layers.txt"] + "engine: base\n"})
        self.assertEqual(found, ["src/layers.txt: names engine, but there is no folder src/engine"])

    def test_refuses_a_cycle_because_lines_name_only_earlier_ones(self):
        found = complaints({"src/layers.txt": "base: tensor\ntensor: base\nquant: tensor\nchat: base\napp: *\n"})
        self.assertEqual(found, ["src/layers.txt:1: base names tensor, which has no earlier line"])

    def test_refuses_a_second_line_of_a_folder(self):
        found = complaints({"src/layers.txt": GOOD["src/layers.txt"] + "chat: tensor\n"})
        self.assertEqual(found, ["src/layers.txt:7: chat has a second line"])

    def test_refuses_a_library_outside_its_home(self):
        found = complaints({"src/chat/bad.h": "#include <CLI/CLI.hpp>\n#include <expected>\n"})
        self.assertEqual(
            found,
            [
                "src/chat/bad.h: includes <CLI/CLI.hpp>, whose only place is app/",
                "src/chat/bad.h: includes <expected>, whose only place is src/base/result.h",
            ],
        )


if __name__ == "__main__":
    unittest.main()
