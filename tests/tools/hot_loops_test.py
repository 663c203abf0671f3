"""What tools/hot_loops.py finds in machine code."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import hot_loops  # noqa: E402  (found through the path above)


def objdump(text):
    """The text with the tabs of objdump's listings."""
    return re.sub(r"^( *[0-9a-f]+:)  ", r"\1\t", text, flags=re.MULTILINE)


# A loop over blocks, whose sum comes from the stack and goes back there, around one over words, which is left in the
# middle and has two ways back; then a loop without products.
NESTED = objdump("""
kernels.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)>:
   0:  vmovdqu64 0x40(%rsp),%zmm5
   8:  vmovdqu64 (%rax),%zmm0
  10:  vpdpbusd 0x10(%rdi){1to16},%zmm0,%zmm1
  18:  cmp    %rax,%rcx
  1b:  je     30 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)+0x30>
  1d:  cmp    %rax,%rdx
  20:  je     8 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)+0x8>
  22:  add    $0x40,%rax
  28:  jmp    8 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)+0x8>
  30:  vpaddd %zmm1,%zmm5,%zmm5
  38:  vmovdqu64 %zmm5,0x40(%rsp)
  40:  jne    0 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)>
  48:  mov    (%rsi),%edx
  4a:  add    $0x4,%rsi
  4c:  jne    48 <void hearth::(anonymous namespace)::multiply_direct<hearth::quant::Q4_K, 4ul>(hearth::Task const&, long)+0x48>
  4e:  ret
""")

# The same product with everything that makes one slow, in a frame of its own.
SLOW = objdump("""
kernels.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <void hearth::(anonymous namespace)::multiply_unpacked<hearth::TileShape{32ul, true}, 8ul>(long)>:
   0:  mov    %rsp,%rbp
   8:  vpbroadcastd 0x10(%rdi),%zmm2
  10:  vmovdqu64 -0x40(%rbp),%zmm1
  18:  vpdpbusd %zmm2,%zmm0,%zmm1
  20:  vmovdqu64 %zmm1,0x80(%rsp)
  24:  lea    0x80(%rsp),%rdx
  28:  jne    8 <void hearth::(anonymous namespace)::multiply_unpacked<hearth::TileShape{32ul, true}, 8ul>(long)+0x8>
  30:  ret

0000000000000100 <void hearth::(anonymous namespace)::unpack<hearth::quant::Q4_K>(long)>:
 100:  vpdpbusd 0x40(%rsp){1to16},%zmm0,%zmm1
 108:  jne    100 <void hearth::(anonymous namespace)::unpack<hearth::quant::Q4_K>(long)>
""")

ARM = objdump("""
kernels.o:     file format elf64-littleaarch64


Disassembly of section .text:

0000000000000000 <void hearth::multiply_direct<hearth::quant::Q8_0, 1ul>(long)>:
   0:  ldr q1, [x0, #16]
   4:  ldr q2, [sp, #32]
   8:  dup v3.4s, w1
   c:  sdot v0.4s, v1.16b, v2.4b[0]
  10:  b.ne 0 <void hearth::multiply_direct<hearth::quant::Q8_0, 1ul>(long)>  // b.any
  14:  ret
""")


class HotLoops(unittest.TestCase):
    def test_counts_in_innermost_loops_with_products(self):
        self.assertEqual(hot_loops.hot_loops(NESTED, "avx512"), [("avx512", "multiply_direct<Q4_K, 4>", 8, 1, 0, 0)])

    def test_finds_stack_and_broadcasts_in_micro_kernels_alone(self):
        self.assertEqual(
            hot_loops.hot_loops(SLOW, "avx512"), [("avx512", "multiply_unpacked<TileShape{32, true}, 8>", 6, 1, 2, 1)]
        )

    def test_reads_arm64(self):
        self.assertEqual(hot_loops.hot_loops(ARM, "neon"), [("neon", "multiply_direct<Q8_0, 1>", 5, 1, 1, 1)])

    def test_calls_a_slow_loop_a_fault(self):
        rows = hot_loops.hot_loops(SLOW, "avx512")
        loop = "avx512: multiply_unpacked<TileShape{32, true}, 8>"
        self.assertEqual(
            list(hot_loops.faults(rows, [])),
            [
                f"{loop}: 2 x stack in a hot loop of 6 instructions",
                f"{loop}: 1 x broadcasts in a hot loop of 6 instructions",
            ],
        )

    def test_takes_a_reason_where_it_is_needed_and_nowhere_else(self):
        rows = hot_loops.hot_loops(SLOW, "avx512")
        reasons = [("stack", "avx512", r"multiply_unpacked<", 2, "why"), ("broadcasts", "avx.*", r".*", 1, "why")]
        self.assertEqual(list(hot_loops.faults(rows, reasons)), [])
        too_few = [("stack", "avx512", r"multiply_unpacked<", 1, "why"), reasons[1]]
        self.assertEqual(len(list(hot_loops.faults(rows, too_few))), 1)
        more = [*reasons, ("stack", "avx2", r".*", 1, "why")]
        self.assertEqual(
            list(hot_loops.faults(rows, more)), ["no hot loop of 'avx2', '.*' needs its stack: the reason in ALLOWED can go"]
        )

    def test_says_which_lines_differ_from_the_table(self):
        self.assertEqual(
            list(hot_loops.differences(["# GCC", "a\t1", "b\t2"], ["# GCC", "a\t1", "b\t3"])),
            ["stored, not here: b\t2", "here, not stored: b\t3"],
        )


if __name__ == "__main__":
    unittest.main()
