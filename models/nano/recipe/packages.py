"""Source packages of the training text: the list, their download, the files in them.

packages.py     downloads every package of sources.tsv that is missing, with apt-get
"""

import bz2
import csv
import dataclasses
import gzip
import io
import lzma
import re
import subprocess
import tarfile
from collections.abc import Iterator

import places

UNKNOWN = "\N{REPLACEMENT CHARACTER}"


@dataclasses.dataclass(frozen=True)
class Source:
    """One line of sources.tsv."""

    domain: str
    package: str
    licence: str
    form: str
    limit_bytes: int
    paths: str  # regular expression; "archive::member" reaches into a tar archive

    @property
    def file(self):
        """The newest download; apt's names are PACKAGE_VERSION_ARCHITECTURE.deb."""
        found = sorted(places.PACKAGES.glob(f"{self.package}_*.deb"))
        return found[-1] if found else None

    @property
    def version(self) -> str:
        return self.file.name.split("_")[1].replace("%3a", ":")


def sources() -> list[Source]:
    with (places.RECIPE / "sources.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Source(
                row["domain"],
                row["package"],
                row["licence"],
                row["form"],
                int(row["limit_mb"]) * 1_000_000,
                row["paths"],
            )
            for row in rows
        ]


def download() -> None:
    places.PACKAGES.mkdir(parents=True, exist_ok=True)
    missing = {source.package for source in sources() if source.file is None}
    for package in sorted(missing):
        subprocess.run(["apt-get", "download", "-qq", package], cwd=places.PACKAGES, check=True)


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isreg():
            yield member.name, archive.extractfile(member).read()


def _unpacked(name: str, data: bytes) -> bytes:
    if name.endswith((".gz", ".dz")):
        return gzip.decompress(data)
    return bz2.decompress(data) if name.endswith(".bz2") else data


def files(source: Source) -> Iterator[tuple[str, str]]:
    """(path, text) of the files that the source names, unpacked; files that are hardly UTF-8 are left out."""
    wanted = re.compile(source.paths.partition("::")[2] or source.paths)
    inner = re.compile(source.paths.partition("::")[0]) if "::" in source.paths else None
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", source.file], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as outer:
            for name, data in _members(outer):
                if inner is None:
                    found = [(name, data)]
                elif inner.search(name):
                    found = _members(tarfile.open(fileobj=io.BytesIO(lzma.decompress(data)), mode="r|"))
                else:
                    continue
                for path, content in found:
                    if wanted.search(path):
                        text = _unpacked(path, content).decode(errors="replace")
                        if text.count(UNKNOWN) * 10_000 <= len(text):
                            yield path, text.replace(UNKNOWN, "")


if __name__ == "__main__":
    download()
