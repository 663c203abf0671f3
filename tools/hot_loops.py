#!/usr/bin/env python3
"""What the hot loops of the CPU kernels are made of: hot_loops.py BUILD_FOLDER [--write]

Disassembles the kernel sets in BUILD_FOLDER and looks at the innermost loops of their micro-kernels. A loop that keeps
sums on the stack, or spends an instruction on bringing one activation into every lane where the product could do that
itself, became slow, which no test of results shows: it is a fault, unless ALLOWED has the reason. What each loop has is
compared with the stored table tests/golden/backend/hot_loops_<processor>.tsv; --write stores what was read instead.
The numbers belong to one release of one compiler; with another the exit status is 77, skipped.
"""

import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = ["set", "kernel", "instructions", "products", "stack", "broadcasts"]

# The functions whose innermost loops are the inner loops of matrix products, attention and recurrent layers.
MICRO_KERNEL = re.compile(r"multiply_(?:direct|unpacked|floats|strip|step|rows)<|delta_strip$")

ANY = 1 << 30
# (column, kernel sets, kernels, how many of that a hot loop may have at most, why)
ALLOWED = [
    ("stack", "amx", r"multiply_step<TileShape", 7, "what tile instructions add up can be read from memory alone"),
    ("stack", "amx", r"multiply_step<(false|true), ", 256, "the same"),
    ("stack", ".*", r"multiply_direct<Q3_K, ", 36, "general registers: addresses and shifts depend on the group of words"),
    ("stack", ".*", r"multiply_direct<Q5_K, ", 14, "the same"),
    ("stack", ".*", r"multiply_direct<NVFP4, ", 5, "general registers: the scales of all rows are looked up in a table"),
    ("stack", ".*", r"multiply_direct<(Q2_K|Q4_K|Q6_K), [24]>", 4, "a vector or two of four or eight sums, and addresses"),
    ("stack", "avx_vnni|avx2", r"multiply_direct<(Affine<8, float>|IQ4_XS), ", 2, "an address: there are 16 registers"),
    ("stack", "avx_vnni|avx2", r"multiply_unpacked<TileShape\{256, 256, 16, 256, false, false, true\}, 4>", 2, "the same"),
    ("broadcasts", "avx2|avx_vnni", r".*", ANY, "VEX instructions cannot do it themselves"),
    ("broadcasts", "avx512", r"multiply_(direct|unpacked)<", ANY, "vpmaddubsw cannot do it itself"),
    ("broadcasts", "avx512_vnni", r"multiply_direct<", 16, "scale and sum of a block's activations, used more than once"),
    ("broadcasts", "avx512_vnni", r"multiply_unpacked<TileShape\{(32|64), ", 32, "the same"),
    ("broadcasts", "amx", r"multiply_step<TileShape", 32, "the same"),
    ("broadcasts", "amx", r"multiply_step<true, ", 512, "the same, and GCC 12 converts a sum after it has brought it to all lanes"),
    ("broadcasts", "avx512.*", r"multiply_strip<", 8, "each value meets two vectors"),
    ("broadcasts", "avx512.*", r"multiply_floats<F32, 1>", 4, "an instruction has one operand in memory, here the weights"),
    ("broadcasts", "avx512.*", r"delta_strip", 4, "each value meets two vectors"),
]


@dataclasses.dataclass(frozen=True)
class Instructions:
    """How a processor's instructions read in the output of objdump; each is a pattern of name and operands."""

    branch: str
    end: str  # what the next instruction does not follow
    product: str
    stack: str
    frame: str  # the stack through the frame pointer
    set_frame: str
    broadcast: str


PROCESSORS = {
    "x86-64": Instructions(
        branch=r"j\w+ ",
        end=r"(?:jmp|ret|ud2)\b",
        product=r"(?:\{vex\} )?(?:vpdp(?:bu|w)ss?ds? |vpmaddubsw |vpmaddwd |vfn?m(?:add|sub)\d+ps |tdpbs[su]d )",
        stack=r"(?!lea ).*\(%rsp",
        frame=r"(?!lea ).*\(%rbp",
        set_frame=r"mov %rsp,%rbp$",
        broadcast=r"vp?broadcast",
    ),
    "aarch64": Instructions(
        branch=r"(?:b|b\.\w+|cbn?z|tbn?z) ",
        end=r"(?:b|br|ret)\b(?!\.)",
        product=r"(?:[su]dot|smmla|fml[as]|smull|smlal) ",
        stack=r".*\[sp\b",
        frame=r".*\[x29\b",
        set_frame=r"mov x29, sp$",
        broadcast=r"(?:dup|ld1r) ",
    ),
}


def functions(disassembly):
    """(name, [(address, instruction)]) of everything that objdump -d prints."""
    for part in re.split(r"\n\n(?=[0-9a-f]+ <)", disassembly):
        head = re.match(r"[0-9a-f]+ <(.*)>:\n", part)
        if head:
            lines = re.findall(r"^ *([0-9a-f]+):\t(\S+) *\t?(.*?) *$", part, re.MULTILINE)
            yield head.group(1), [(int(address, 16), f"{name} {operands}") for address, name, operands in lines]


def short_name(name):
    """A function's name without its arguments, namespaces, and what only says that a number has no sign."""
    name = re.sub(r"\(anonymous namespace\)::|\b(?:\w+::)+", "", name)
    name = re.sub(r"(\d)ul\b", r"\1", name)
    name = re.sub(r"^(?:void|auto) ", "", name)
    # Arguments begin at the parenthesis that no angle bracket is around.
    depth = 0
    for i, character in enumerate(name):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "(" and depth == 0:
            return name[:i]
    return name


def flow(code, processor):
    """By instruction, the numbers of those that may follow it."""
    numbers = {address: number for number, (address, _) in enumerate(code)}
    following = []
    for number, (_, text) in enumerate(code):
        after = [] if re.match(processor.end, text) or number + 1 == len(code) else [number + 1]
        target = re.search(r"\b([0-9a-f]+) <", text) if re.match(processor.branch, text) else None
        if target and int(target.group(1), 16) in numbers:
            after.append(numbers[int(target.group(1), 16)])
        following.append(after)
    return following


def back_edges(following):
    """(from, to) of every edge to an instruction that is on the path to it: `to` begins a loop."""
    found, state = [], [0] * len(following)  # 0 unseen, 1 on the path, 2 done
    path = [(0, iter(following[0]))]
    state[0] = 1
    while path:
        number, rest = path[-1]
        for after in rest:
            if state[after] == 1:
                found.append((number, after))
            elif state[after] == 0:
                state[after] = 1
                path.append((after, iter(following[after])))
                break
        else:
            state[number] = 2
            path.pop()
    return found


def innermost_loops(code, processor):
    """The instructions of each loop that has no other one in it."""
    following = flow(code, processor)
    before = [[] for _ in code]
    for number, after in enumerate(following):
        for other in after:
            before[other].append(number)
    loops = {}  # by first instruction: everything that comes back to it
    for last, first in back_edges(following):
        inside, waiting = loops.setdefault(first, {first}), [last]
        while waiting:
            number = waiting.pop()
            if number not in inside:
                inside.add(number)
                waiting += before[number]
    for first, inside in sorted(loops.items()):
        if not any(other in inside for other in loops if other != first):
            yield [code[number][1] for number in sorted(inside)]


def hot_loops(disassembly, kernel_set):
    """The rows of the table for one object, for the processor that it is for."""
    processor = PROCESSORS[processor_of(disassembly)]
    rows = []
    for name, code in functions(disassembly):
        if not MICRO_KERNEL.match(short_name(name)) or "[clone .cold" in name:
            continue
        has_frame = any(re.match(processor.set_frame, text) for _, text in code)
        stack = f"(?:{processor.stack}|{processor.frame})" if has_frame else processor.stack
        for loop in innermost_loops(code, processor):
            n_products, n_stack, n_broadcasts = (
                sum(bool(re.match(pattern, text)) for text in loop)
                for pattern in (processor.product, stack, processor.broadcast)
            )
            if n_products > 0:
                rows.append((kernel_set, short_name(name), len(loop), n_products, n_stack, n_broadcasts))
    return sorted(rows)


def faults(rows, allowed):
    """What is wrong with loops, and with reasons that are needed no longer."""
    unused = list(allowed)
    for row in rows:
        for column in ("stack", "broadcasts"):
            n = row[COLUMNS.index(column)]
            if n == 0:
                continue
            reasons = [each for each in allowed if is_about(each, column, row)]
            unused = [each for each in unused if each not in reasons]
            if not any(n <= most for _, _, _, most, _ in reasons):
                yield f"{row[0]}: {row[1]}: {n} x {column} in a hot loop of {row[2]} instructions"
    for column, sets, kernels, *_ in unused:
        yield f"no hot loop of '{sets}', '{kernels}' needs its {column}: the reason in ALLOWED can go"


def is_about(reason, column, row):
    """Whether one of ALLOWED is about that column of a row."""
    return reason[0] == column and re.fullmatch(reason[1], row[0]) and re.match(reason[2], row[1])


def processor_of(disassembly):
    """The processor of an object, or none."""
    match = re.search(r"file format elf64-(?:little)?(\S+)", disassembly)
    return match and match.group(1)


def compiler_of(objdump, path):
    """What the compiler of an object says of itself."""
    dump = subprocess.run([objdump, "-s", "-j", ".comment", path], capture_output=True, check=False).stdout
    data = b"".join(bytes.fromhex(line.replace(b" ", b"").decode()) for line in re.findall(rb"^ [0-9a-f]+ ((?:[0-9a-f]+ ){1,4}) ", dump, re.MULTILINE))
    return data.strip(b"\0").split(b"\0")[0].decode()


def differences(stored, lines):
    yield from (f"stored, not here: {line}" for line in stored if line not in lines)
    yield from (f"here, not stored: {line}" for line in lines if line not in stored)


def main():
    build = pathlib.Path(sys.argv[1])
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    objdump = re.search(r"^CMAKE_OBJDUMP:FILEPATH=(.*)$", cache, re.MULTILINE).group(1)
    objects = sorted(build.glob("src/backend/CMakeFiles/hearth_backend.dir/cpu/kernels/*.cpp.o"))
    rows, processor, compiler = [], None, None
    for path in objects:
        command = [objdump, "--disassemble", "--demangle", "--no-show-raw-insn", "--wide", path]
        disassembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        processor, compiler = processor_of(disassembly), compiler_of(objdump, path)
        rows += hot_loops(disassembly, path.name.split(".")[0])
    found_faults = list(faults(rows, ALLOWED))
    lines = [f"# {compiler}", "\t".join(COLUMNS), *("\t".join(map(str, row)) for row in rows)]
    table = ROOT / "tests" / "golden" / "backend" / f"hot_loops_{processor}.tsv"
    if "--write" in sys.argv:
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(found_faults))
        return 1 if found_faults else 0
    stored = table.read_text(encoding="utf-8").splitlines() if table.is_file() else [f"# nothing for {processor}"]
    if stored[0] != lines[0]:
        print(f"the stored table is of another compiler: '{stored[0]}', here '{lines[0]}': skipped")
        return 77
    found_faults += differences(stored, lines)
    print("\n".join(found_faults))
    return 1 if found_faults else 0


if __name__ == "__main__":
    sys.exit(main())
