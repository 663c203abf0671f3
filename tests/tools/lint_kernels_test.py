"""What tools/lint_kernels.py refuses: errors planted into kernels, each by the part that has to see it.

Usage: lint_kernels_test.py [METAL_SOURCE]; without it, or without clang 19, the front end is left out.
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import lint_kernels  # noqa: E402  (found through the path above)

# A kernel file without a fault.
GOOD = """
namespace hearth::backend::gpu {

DEVICE_FN f32 twice(f32 x) {
  return 2.0f * x;
}

KERNEL(double_f32, 64, AddParams, BUFFER(0, const f32, x), BUFFER(1, f32, y)) {
  SHARED_ARRAY(f32, part, 64);  // a * in a comment, and std::
  part[k_thread.x] = x[k_thread.x] * 3.0f;
  group_barrier();
  if (k_thread.x < p.n) {
    y[k_thread.x] = twice(part[k_thread.x]);
  }
}

}  // namespace hearth::backend::gpu
"""

# What clang cannot see, since it is right in its language: (line put into the kernel, what is said of it)
PLANTED_IN_TEXT = [
    ("const f32* raw = x;", "raw pointer"),
    ("f32 z = *y;", "unary *"),
    ("goto end;", "goto"),
    ("static u32 counter = 0;", "static variable"),
    ("std::fill(y, y + 4, 0.0f);", "standard library"),
    ("double z = 0.0;", "double"),
    ("if constexpr (true) {", "newer than C++14"),
    ("auto f = [] { return 1; };", "lambda"),
    ("const_cast<f32&>(x[0]) = 0.0f;", "takes const"),
    ("y[0] = __shfl_sync(~0u, 1.0f, 3);", "platform spelling"),
    ("y[0] = simd_sum(1.0f);", "platform spelling"),
    ("y[0] = INFINITY;", "infinity or NaN"),
]
PLANTED_OUTSIDE = [
    ("u32 counter = 0;", "variable outside a function"),
    ("struct Pair {\n  f32 a;\n  f32 sum() const {\n    return a;\n  }\n};", "member function"),
    ("DEVICE_FN u32 factorial(u32 n) {\n  return n == 0u ? 1u : n * factorial(n - 1u);\n}", "recursion"),
    ("DEVICE_FN void late() {\n  SHARED_ARRAY(f32, part, 4);\n}", "belongs into a kernel"),
]

# What the front end has to refuse, put into a kernel with buffers x (const) and y or before it.
PLANTED_IN_METAL = [
    ("THREAD(const f32) q = x;", "initialize"),
    ("SHARED(f32) q = y;", "initialize"),
    ("DEVICE(f32) q = x;", "initialize"),
    ("x[0] = 1.0f;", "not assignable"),
    ("p.n = 1u;", "not assignable"),
    ("y[0] = unknown(1.0f);", "undeclared"),
    ("double d = 1.0; y[0] = f32(d);", "cl_khr_fp64"),
    ("u32* q = new u32; y[0] = f32(q[0]);", "new"),
    ("throw 1;", "exceptions"),
    ("y[0] = make4(1.0f, 0.0f);", "no matching function"),
    ("load4(x).q = 1.0f;", "vector component"),
    ("u32 (*f)(u32) = nullptr; y[0] = f32(f(1u));", "pointers to functions"),
]


def with_line(line):
    return GOOD.replace("  group_barrier();\n", f"  group_barrier();\n  {line}\n")


def with_declaration(text):
    return GOOD.replace("KERNEL(", f"{text}\n\nKERNEL(")


class TextRules(unittest.TestCase):
    def test_accept_a_kernel_without_fault(self):
        self.assertEqual(lint_kernels.text_faults(GOOD), [])

    def test_accept_this_repository(self):
        for path in lint_kernels.kernel_files():
            self.assertEqual(lint_kernels.text_faults(path.read_text(encoding="utf-8")), [], path.name)

    def test_refuse_every_planted_line(self):
        for line, fault in PLANTED_IN_TEXT:
            found = "\n".join(lint_kernels.text_faults(with_line(line)))
            self.assertIn("12: ", found, line)
            self.assertIn(fault, found, line)

    def test_refuse_every_planted_declaration(self):
        for text, fault in PLANTED_OUTSIDE:
            self.assertIn(fault, "\n".join(lint_kernels.text_faults(with_declaration(text))), text)

    def test_refuse_buffers_out_of_order(self):
        found = lint_kernels.text_faults(GOOD.replace("BUFFER(1,", "BUFFER(2,"))
        self.assertEqual(found, ["kernel double_f32: buffers are numbered [0, 2], expected 0, 1, ..."])

    def test_refuse_a_shared_array_after_other_statements(self):
        found = lint_kernels.text_faults(with_line("SHARED_ARRAY(f32, late, 4);"))
        self.assertEqual(found, ["kernel double_f32: SHARED_ARRAY has to come before everything else"])


class Lists(unittest.TestCase):
    def test_the_bindings_have_one_vocabulary(self):
        self.assertEqual(list(lint_kernels.vocabulary_faults()), [])

    def test_the_list_of_kernels_is_that_of_the_files(self):
        self.assertEqual(list(lint_kernels.list_faults()), [])


@unittest.skipUnless(len(sys.argv) > 1 and lint_kernels.front_end_faults("") is not None, "no Metal source or no clang 19")
class FrontEnd(unittest.TestCase):
    def setUp(self):
        self.library = pathlib.Path(METAL_SOURCE).read_text(encoding="utf-8")

    def faults(self, kernel):
        # As the build does: without the namespace.
        return lint_kernels.front_end_faults(self.library + "\n".join(kernel.splitlines()[3:-2]))

    def test_accepts_the_library(self):
        self.assertEqual(lint_kernels.front_end_faults(self.library), "")

    def test_accepts_a_kernel_without_fault(self):
        self.assertEqual(self.faults(GOOD), "")

    def test_refuses_every_planted_error(self):
        for line, fault in PLANTED_IN_METAL:
            self.assertIn(fault, self.faults(with_line(line)), line)

    def test_refuses_shared_memory_outside_a_kernel(self):
        found = self.faults(with_declaration("DEVICE_FN void late() {\n  SHARED_ARRAY(f32, part, 4);\n}"))
        self.assertIn("cannot be declared in local address space", found)

    def test_refuses_standard_headers(self):
        self.assertIn("file not found", lint_kernels.front_end_faults("#include <vector>\n"))


if __name__ == "__main__":
    METAL_SOURCE = sys.argv[1] if len(sys.argv) > 1 else ""
    unittest.main(argv=sys.argv[:1])
