"""The pages name things that exist, and their tables agree with the lists in the code."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# A path in backticks that begins with one of these; with capitals or braces it is a pattern like NAME.h.
TOP_FOLDERS = ["src", "app", "tests", "tools", "docs", "cmake", "bench"]
SOURCE_FOLDERS = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())
PATH = re.compile(rf"`((?:{'|'.join(TOP_FOLDERS + SOURCE_FOLDERS)})/[a-z0-9_./-]*)`")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def backticked(text):
    return set(re.findall(r"`([^`]+)`", text))


def exists(path):
    """Pages may leave out src/, and .h where they mean a header and its source."""
    return any((root / (path + suffix)).exists() for root in (ROOT, ROOT / "src") for suffix in ("", ".h"))


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for page in PAGES:
            for target in LINK.findall(page.read_text(encoding="utf-8")):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}")

    def test_paths_exist(self):
        for page in PAGES:
            for path in PATH.findall(page.read_text(encoding="utf-8")):
                self.assertTrue(exists(path), f"{page.relative_to(ROOT)}: {path}")

    def test_readme_lists_every_architecture(self):
        row = next(line for line in read("README.md").splitlines() if line.startswith("| architectures"))
        entries = re.findall(r'ArchitectureEntry\{"(\w+)"', read("src/model/arch/all.cpp"))
        self.assertEqual(backticked(row), set(entries))

    def test_readme_lists_every_command(self):
        listed = re.findall(r"^\| `hearth (\w+)", read("README.md"), re.MULTILINE)
        commands = re.findall(r'\{"(\w+)",\s*"', read("app/hearth/commands.cpp"))
        self.assertEqual(sorted(listed), sorted(commands))

    def test_architecture_page_has_a_line_for_every_folder(self):
        page = read("docs/architecture.md")
        for line in read("src/layers.txt").splitlines():
            folder = line.split(":")[0]
            if not line.startswith("#"):
                path = "app/hearth" if folder == "app" else f"src/{folder}"
                self.assertIn(f"| `{path}/` |", page)


if __name__ == "__main__":
    unittest.main()
