#!/usr/bin/env python3
"""Checks GPU kernels where no Metal compiler is: lint_kernels.py [METAL_SOURCE]

The text of every kernel file is held to the rules of the dialect (docs/howto/add-gpu-kernel.md) that no compiler here
sees, the three bindings to the same vocabulary, and the list of kernels to the files. With METAL_SOURCE, which a build
leaves in src/backend/gpu/, clang's front end for "C++ for OpenCL" reads that too: it has Metal's address spaces, and
tools/metal_shim declares what kernels use of Metal's library. What it accepts is plausible Metal; what it rejects is wrong.
"""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GPU = ROOT / "src" / "backend" / "gpu"
NOT_KERNELS = {"registry.h", "registry.cpp", "all_kernels.h"}
CLANG = "clang-19"

NUMBER = r"(?:[uif](?:8|16|32|64)|bf16|f32x4|u32x[24]|float|int|unsigned|uint|char|short|half|bool|void|auto|Tile\w+|\w+Params)"
RULES = [
    (rf"\b{NUMBER}(?:\s+const)?\s*[*&]+\s*(?:const\s+)?\w", "raw pointer or reference: use DEVICE, SHARED, THREAD or THREAD_REF"),
    (r"(?:^|[=(,;{}?:&|<>]|\breturn)\s*\*\s*[A-Za-z_(]", "unary *: write pointer[0]"),
    (r"\bgoto\b", "goto"),
    (r"\bstatic\b", "static variable, or a function that should be DEVICE_FN"),
    (r"\b(?:std::|printf\b|assert\s*\()", "standard library"),
    (r"\b(?:double|long)\b", "double or long: their size or support differs"),
    (r"\b(?:virtual|dynamic_cast|typeid|throw|try|catch|new|delete|thread_local|noexcept|template|typename)\b", "not in the common subset"),
    (r"\bif\s+constexpr\b|\b(?:co_await|requires|concept|consteval|constinit)\b", "newer than C++14"),
    (r"\[\s*[&=]?\s*\]\s*(?:\(|\{)", "lambda"),
    (r"\b(?:const_cast|reinterpret_cast)\b", "cast that takes const or an address space away"),
    (r"\b(?:threadIdx|blockIdx|blockDim|__\w+|simd_(?!sum_f32|sum_u32|max_f32|max_u32|min_u32)\w+|threadgroup_barrier|as_type|atomic\w*)\b", "platform spelling"),
    (r"\boperator\b|\)\s*const\s*\{", "member function or operator in kernel code"),
    (r"\b(?:isnan|isinf|INFINITY|NAN)\b", "infinity or NaN: a compiler may assume them away"),
    (r"^(?:\w+\s+)+\w+\s*(?:\[\w*\])?\s*(?:=.*)?;", "variable outside a function"),  # those begin a line
]


def without_comments(text):
    """The text with comments blanked, so that lines keep their numbers."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL)


def kernel_files():
    files = [path for path in sorted((GPU / "kernels").iterdir()) if path.name not in NOT_KERNELS]
    return [*files, GPU / "dialect" / "math.h", GPU / "dialect" / "tiles.h"]


def line_faults(text):
    """(line number, what is wrong) by the rules that look at a line alone."""
    for number, line in enumerate(without_comments(text).splitlines(), start=1):
        if not line.lstrip().startswith("#"):
            for pattern, fault in RULES:
                if re.search(pattern, line):
                    yield number, fault


def kernels(text):
    """(name, parameters, body) of every KERNEL of a text without comments."""
    for match in re.finditer(r"^(?:EARLY_)?KERNEL\((\w+),", text, re.MULTILINE):
        body_start = text.index("{", match.end())
        end = text.index("\n}", body_start)
        yield match.group(1), text[match.end() : body_start], text[body_start + 1 : end]


def kernel_faults(text):
    """What is wrong with kernels as a whole."""
    text = without_comments(text)
    for name, parameters, body in kernels(text):
        indices = [int(index) for index in re.findall(r"BUFFER\((\d+),", parameters)]
        if indices != list(range(len(indices))):
            yield f"kernel {name}: buffers are numbered {indices}, expected 0, 1, ..."
        statements = [line.strip() for line in body.splitlines() if line.strip()]
        is_array = [statement.startswith("SHARED_ARRAY(") for statement in statements]
        if is_array != sorted(is_array, reverse=True):
            yield f"kernel {name}: SHARED_ARRAY has to come before everything else"
    for name in re.findall(r"^DEVICE_FN[^(]*?\b(\w+)\(", text, re.MULTILINE):
        body = re.search(rf"^DEVICE_FN[^(]*?\b{name}\([^{{]*\{{(.*?)\n\}}", text, re.MULTILINE | re.DOTALL)
        if body and re.search(rf"\b{name}\(", body.group(1)):
            yield f"function {name}: recursion"
        if body and "SHARED_ARRAY(" in body.group(1):
            yield f"function {name}: SHARED_ARRAY belongs into a kernel"


def text_faults(text):
    """Everything that the text of one kernel file breaks, as 'LINE: fault' or a sentence."""
    return [f"{number}: {fault}" for number, fault in line_faults(text)] + list(kernel_faults(text))


def vocabulary(*names):
    """Functions and macros that a binding offers to kernels."""
    text = "".join(without_comments((GPU / "dialect" / name).read_text(encoding="utf-8")) for name in names)
    plain_types = re.sub(r"^(DEVICE_FN) (?:DEVICE|SHARED)\([^)]*\)", r"\1 pointer", text, flags=re.MULTILINE)
    functions = re.findall(r"^DEVICE_FN[^;{]*?\b(\w+)\(", plain_types, re.MULTILINE)
    templates = re.findall(r"^(?:f32x4|u32x[24]|void|emulator::CheckedPointer<const u\d+, space>) (\w+)\(", text, re.MULTILINE)
    macros = re.findall(r"^#define (\w+)", text, re.MULTILINE)
    return set(functions) | set(templates) | set(macros)


# Names that a binding needs for itself.
OWN_NAMES = {"SITE", "KERNEL_ENTRY", "KERNEL_THAT", "k_thread_in_group", "add_tile_product", "dot_tile_word", "multiply_integer_tiles", "unpack_bytes"}


def vocabulary_faults():
    found = {
        "emulator": vocabulary("emulator.h", "tiles_emulator.h", "vectors.h"),
        "CUDA": vocabulary("cuda.h", "tiles_cuda.h", "vectors.h"),
        # Positions are parameters of the kernel there, and vectors have operators.
        "Metal": vocabulary("metal.h", "tiles_metal.h", "vectors.h")
        | set(re.findall(r"\b(k_\w+) \[\[", (GPU / "dialect" / "metal.h").read_text(encoding="utf-8"))),
    }
    everything = set().union(*found.values()) - OWN_NAMES
    for target, names in found.items():
        for name in sorted(everything - names):
            yield f"dialect: the binding for {target} has no {name}, others do"


def list_faults():
    """Differences between the list of kernels and the kernel files."""
    listed = re.findall(r"^\s*X\((\w+)\)", (GPU / "kernels" / "all_kernels.h").read_text(encoding="utf-8"), re.MULTILINE)
    defined = []
    for path in kernel_files():
        if path.suffix == ".cpp":
            defined += re.findall(r"^\w*KERNEL\((\w+),", without_comments(path.read_text(encoding="utf-8")), re.MULTILINE)
    for name in sorted(set(defined) - set(listed)):
        yield f"src/backend/gpu/kernels/all_kernels.h: has no {name}"
    for name in sorted(set(listed) - set(defined)):
        yield f"src/backend/gpu/kernels/all_kernels.h: {name} is in no kernel file"
    if listed != sorted(listed):
        yield "src/backend/gpu/kernels/all_kernels.h: names are not in order"


def front_end_faults(metal_text):
    """What clang says of a Metal source; None where there is no clang 19."""
    if shutil.which(CLANG) is None:
        return None
    command = [
        *[CLANG, "-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64", "-fsyntax-only", "-cl-no-stdinc"],
        *["-isystem", str(ROOT / "tools" / "metal_shim"), "-DHEARTH_METAL_LINT"],
        *["-Xclang", "-cl-ext=+cl_khr_fp16,-cl_khr_fp64,-__opencl_c_fp64"],
        *["-Werror", "-Wall", "-Wextra", "-Wpre-c++17-compat"],
        *["-Wno-unknown-attributes", "-Wno-unused-function", "-Wno-unused-parameter", "-"],
    ]
    return subprocess.run(command, input=metal_text, capture_output=True, text=True, check=False).stderr


def main():
    complaints = [*vocabulary_faults(), *list_faults()]
    for path in kernel_files():
        place = path.relative_to(ROOT)
        complaints += [f"{place}: {fault}" for fault in text_faults(path.read_text(encoding="utf-8"))]
    if len(sys.argv) > 1:
        complaints.append(front_end_faults(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")) or "")
    complaints = [complaint for complaint in complaints if complaint]
    print("\n".join(complaints), file=sys.stderr, end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
