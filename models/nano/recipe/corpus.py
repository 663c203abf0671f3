"""Text for training, a file for each domain and split: cleaned, each block once, a part of the documents held out.

Writes build/nano/text/DOMAIN.{train,heldout}.jsonl, a JSON string a line for each document, and data.tsv, which
says what came from which package.
"""

import csv
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator

import markup
import packages
import places

MIN_BLOCK = 100  # characters; shorter blocks may come again: braces, headings, a return
MAX_LINE = 1000
HELD_OUT = 100  # one document in so many
MIN_DOCUMENT = {"dictionary": 30}
LONGEST = 400_000


def fingerprint(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode(), digest_size=8).digest()


class Deduplicator:
    """Drops blocks of text, as blank lines part them, that have been there before: licences, copied code."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def unseen(self, text: str) -> str:
        kept = []
        for block in re.split(r"\n[ \t]*\n", text):
            if len(block) >= MIN_BLOCK:
                mark = fingerprint(block)
                if mark in self.seen:
                    continue
                self.seen.add(mark)
            kept.append(block)
        return "\n\n".join(kept)


def clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\f", "\n").replace("\x00", "")
    text = re.sub(r"[ \t]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def is_worthwhile(text: str, domain: str) -> bool:
    """Not a table of numbers, not packed into one line, not a stub."""
    if not MIN_DOCUMENT.get(domain, 200) <= len(text) <= LONGEST:
        return False
    if max(map(len, text.split("\n"))) > MAX_LINE and domain not in ("json", "manpage", "german", "manual"):
        return False
    sample = text[:20_000]
    return sum(map(str.isdigit, sample)) < 0.25 * len(sample)


def documents(source: packages.Source, once: Deduplicator) -> Iterator[str]:
    total = 0
    for _, content in packages.files(source):
        for text in markup.FORMS[source.form](content):
            text = clean(once.unseen(clean(text)))
            if is_worthwhile(text, source.domain):
                total += len(text)
                if total > source.limit_bytes:
                    return
                yield text


@dataclasses.dataclass
class Share:
    """What one package gave."""

    source: packages.Source
    documents: int = 0
    bytes: int = 0
    heldout_bytes: int = 0


def is_held_out(text: str) -> bool:
    return int.from_bytes(fingerprint(text)) % HELD_OUT == 0


def build() -> list[Share]:
    places.TEXT.mkdir(parents=True, exist_ok=True)
    domains = dict.fromkeys(source.domain for source in packages.sources())
    files = {
        (domain, split): (places.TEXT / f"{domain}.{split}.jsonl").open("w")
        for domain in domains
        for split in ("train", "heldout")
    }
    once, shares = Deduplicator(), []
    for source in packages.sources():
        share = Share(source)
        for text in documents(source, once):
            held_out = is_held_out(text)
            size = len(text.encode())
            share.documents += 1
            share.bytes += size
            share.heldout_bytes += size if held_out else 0
            json.dump(text, files[source.domain, "heldout" if held_out else "train"], ensure_ascii=False)
            files[source.domain, "heldout" if held_out else "train"].write("\n")
        print(f"{source.domain:11} {source.package:24} {share.documents:7} {share.bytes / 1e6:7.1f} MB", flush=True)
        shares.append(share)
    return shares


def write_table(shares: list[Share]) -> None:
    with (places.CARD / "data.tsv").open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(("domain", "package", "version", "licence", "documents", "bytes", "heldout_bytes"))
        for share in shares:
            source = share.source
            table.writerow(
                (
                    source.domain,
                    source.package,
                    source.version,
                    source.licence,
                    share.documents,
                    share.bytes,
                    share.heldout_bytes,
                )
            )


if __name__ == "__main__":
    write_table(build())
