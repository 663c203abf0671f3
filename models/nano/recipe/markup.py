"""Plain text out of the forms that documentation comes in: HTML, manual pages, dictd dictionaries."""

import html.parser
import re
from collections.abc import Callable

BLOCKS = frozenset(
    "address article blockquote body caption dd div dl dt footer h1 h2 h3 h4 h5 h6 header hr item li "
    "note ol p pre section steps subtitle table td th title tr ul".split()
)
HIDDEN = frozenset("credit desc head info nav script style".split())


class _Stripper(html.parser.HTMLParser):
    """Collects the text of a page; blocks end lines, space is kept in <pre> only."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0
        self.literal = 0

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.hidden += tag in HIDDEN
        self.literal += tag in ("pre", "screen", "code-block")
        if tag in BLOCKS or tag == "br":
            self.parts.append("\n- " if tag in ("li", "item") else "\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden = max(0, self.hidden - (tag in HIDDEN))
        self.literal = max(0, self.literal - (tag in ("pre", "screen", "code-block")))
        if tag in BLOCKS:
            self.parts.append("\n\n" if tag in ("p", "pre", "h1", "h2", "h3", "title", "table") else "\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data if self.literal else re.sub(r"\s+", " ", data))


def of_html(source: str) -> list[str]:
    stripper = _Stripper()
    stripper.feed(source)
    text = "".join(stripper.parts)
    return [re.sub(r"[ \t]*\n[ \t]*(?=[^\s])", "\n", text) if "<pre" not in source else text]


FONT = re.compile(r"\\f(?:\[[^\]]*\]|\([A-Za-z]{2}|.)|\\s[-+]?\d|\\[|&^/,:%]|\\\*\[[^\]]*\]|\\m\[[^\]]*\]")
CHARACTERS = {
    r"\-": "-",
    r"\(aq": "'",
    r"\(dq": '"',
    r"\(bu": "*",
    r"\(em": "--",
    r"\(en": "-",
    r"\(lq": '"',
    r"\(rq": '"',
    r"\(co": "(C)",
    r"\ ": " ",
    r"\~": " ",
    r"\0": " ",
    r"\.": ".",
    r"\'": "'",
    r"\`": "`",
    r"\(ti": "~",
    r"\(ha": "^",
    r"\(rs": "\\",
    r"\(oq": "'",
    r"\(cq": "'",
    r"\e": "\\",
    r"\\": "\\",
}
CHARACTER = re.compile("|".join(re.escape(name) for name in sorted(CHARACTERS, key=len, reverse=True)))
JOINED = frozenset(("BR", "BI", "IB", "IR", "RB", "RI"))
HEADINGS = frozenset(("SH", "SS", "Sh", "Ss"))
SKIPPED = frozenset("TH Dd Dt Os so de ig ft ad ne ie el if nr ds hy nh in ta cs IX rm tr am na fi UC".split())


def _roff_text(line: str) -> str:
    return CHARACTER.sub(lambda found: CHARACTERS[found.group()], FONT.sub("", line))


def _arguments(line: str) -> list[str]:
    return [_roff_text(quoted or plain) for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def of_man(source: str) -> list[str]:
    """Headings, paragraphs and examples of a manual page; the finer points of roff are left out."""
    out: list[str] = []
    literal = skipping = False
    for line in source.splitlines():
        if skipping:  # the body of a macro definition
            skipping = line.strip() != ".."
            continue
        if not line.startswith((".", "'")):
            out.append(_roff_text(line) + ("\n" if literal or not line.strip() else " "))
            continue
        name, _, rest = line[1:].strip().partition(" ")
        skipping = name in ("de", "ig")
        if name in ("nf", "EX", "Bd"):
            literal = True
            out.append("\n\n")
        elif name in ("fi", "EE", "Ed"):
            literal = False
            out.append("\n")
        elif name in HEADINGS:
            out.append("\n\n" + " ".join(_arguments(rest)) + "\n")
        elif name in ("PP", "P", "LP", "Pp", "sp", "HP"):
            out.append("\n\n")
        elif name in ("TP", "TQ"):
            out.append("\n\n")
        elif name in ("IP", "It"):
            out.append("\n\n" + " ".join(_arguments(rest)[:1]) + " ")
        elif name in JOINED:
            out.append("".join(_arguments(rest)) + " ")
        elif name in SKIPPED or name.startswith(('\\"', "\\}")) or not name.isalpha():
            continue
        elif rest:  # B, I, Nm, Fl and their like: the words count
            out.append(" ".join(_arguments(rest)) + ("\n" if literal else " "))
    return ["".join(out)]


def of_dict(source: str) -> list[str]:
    """Entries of a dictd database: a headword at the margin, its text indented below it."""
    entries = re.split(r"\n(?=\S)", source)
    return [entry for entry in entries if not entry.startswith("00-database")]


FORMS: dict[str, Callable[[str], list[str]]] = {
    "text": lambda source: [source],
    "html": of_html,
    "man": of_man,
    "dict": of_dict,
}
