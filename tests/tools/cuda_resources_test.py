"""What tools/cuda_resources.py reads from nvcc's output."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import cuda_resources  # noqa: E402  (found through the path above)

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'sum' for 'sm_90'
ptxas info    : Function properties for sum
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 25 registers, used 1 barriers, 32 bytes smem
ptxas info    : Compile time = 5.2 ms
ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
    64 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers
ptxas info    : Compiling entry function 'sum' for 'sm_100'
ptxas info    : Function properties for sum
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 32 bytes smem
"""

PTX = """.visible .entry sum(
\t.param .u64 sum_param_0
)
{
\tld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
\tld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd1+16];
\tld.global.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+32];
\tld.global.f32 %f9, [%rd2];
\tret;
}
.visible .entry copy(
\t.param .u64 copy_param_0
)
{
\tret;
}
"""


class CudaResources(unittest.TestCase):
    def test_makes_one_line_of_each_kernel(self):
        self.assertEqual(
            list(cuda_resources.make_table(LOG, PTX, "13.0")),
            [
                "# nvcc 13.0; registers per thread by architecture",
                "kernel\tsm_90\tsm_100\tspilled_bytes\tshared_bytes\twide_loads",
                "copy\t255\t-\t64\t0\t0",
                "sum\t25\t32\t0\t32\t3",
            ],
        )


if __name__ == "__main__":
    unittest.main()
