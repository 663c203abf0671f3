#!/usr/bin/env python3
"""What CUDA kernels take: cuda_resources.py BUILD_FOLDER [--write]

Reads what nvcc left in BUILD_FOLDER/src/backend/gpu (its log and the kernels' PTX) and compares it with the stored table
tests/golden/gpu/cuda_resources.tsv: registers per thread, bytes spilled, shared memory, 16-byte loads. A kernel that lost
its wide loads or began to spill became slow, which no test of results shows. --write stores what was read instead.
The numbers belong to one release of nvcc; with another the exit status is 77, skipped.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "golden" / "gpu" / "cuda_resources.tsv"


def read_log(text):
    """{kernel: {architecture: (registers, spilled bytes, shared bytes)}} of what ptxas -v prints."""
    found = {}
    for match in re.finditer(
        r"Compiling entry function '(\w+)' for '(sm_\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
        r".*?Used (\d+) registers([^\n]*)",
        text,
        re.DOTALL,
    ):
        kernel, architecture, stores, loads, registers, rest = match.groups()
        shared = re.search(r"(\d+) bytes smem", rest)
        found.setdefault(kernel, {})[architecture] = (
            int(registers),
            int(stores) + int(loads),
            int(shared.group(1)) if shared else 0,
        )
    return found


def read_wide_loads(ptx):
    """{kernel: number of 16-byte loads from device memory}"""
    found = {}
    for match in re.finditer(r"\.entry (\w+)\(.*?\n\{(.*?)\n\}", ptx, re.DOTALL):
        found[match.group(1)] = len(re.findall(r"ld\.global(?:\.nc)?(?:\.L1::no_allocate)?\.v4", match.group(2)))
    return found


def make_table(log, ptx, version):
    """The lines of the table."""
    resources, wide_loads = read_log(log), read_wide_loads(ptx)
    architectures = sorted({name for each in resources.values() for name in each}, key=lambda name: int(name[3:]))
    yield f"# nvcc {version}; registers per thread by architecture"
    yield "\t".join(["kernel", *architectures, "spilled_bytes", "shared_bytes", "wide_loads"])
    for kernel in sorted(resources):
        each = resources[kernel]
        spilled = max(spill for _, spill, _ in each.values())
        shared = max(shared for _, _, shared in each.values())
        registers = [each[architecture][0] if architecture in each else "-" for architecture in architectures]
        yield "\t".join(map(str, [kernel, *registers, spilled, shared, wide_loads.get(kernel, 0)]))


def nvcc_version():
    try:
        text = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return re.search(r"V([\d.]+)", text).group(1)


def main():
    folder = pathlib.Path(sys.argv[1]) / "src" / "backend" / "gpu"
    version = nvcc_version()
    if version is None or not (folder / "cuda_kernels.log").is_file():
        print("no nvcc, or no kernels compiled by it: skipped")
        return 77
    log = (folder / "cuda_kernels.log").read_text(encoding="utf-8")
    ptx = (folder / "cuda_kernels.ptx").read_text(encoding="utf-8")
    lines = list(make_table(log, ptx, version))
    if "--write" in sys.argv:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return 0
    stored = TABLE.read_text(encoding="utf-8").splitlines()
    if stored[0] != lines[0]:
        print(f"the stored table is of another compiler: '{stored[0]}', here '{lines[0]}': skipped")
        return 77
    differences = [f"stored, not here: {line}" for line in stored if line not in lines]
    differences += [f"here, not stored: {line}" for line in lines if line not in stored]
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
