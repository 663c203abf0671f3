#!/usr/bin/env python3
"""Writes src/quant/types/iq_grids.cpp from the codebooks of the `gguf` Python package.

    python3 tools/make_iq_grids.py > src/quant/types/iq_grids.cpp

tests/quant/iq_grids_test.cpp compares the tables with published checksums.
"""

import gguf.quants as quants
import numpy as np

# C++ name, class of the package, bits per index of a packed row
GRIDS = [
    ("iq2_xxs_grid", quants.IQ2_XXS, 2),
    ("iq2_xs_grid", quants.IQ2_XS, 2),
    ("iq2_s_grid", quants.IQ2_S, 2),
    ("iq3_xxs_grid", quants.IQ3_XXS, 3),
    ("iq3_s_grid", quants.IQ3_S, 3),
    ("iq1_grid", quants.IQ1_S, 2),
]


def packed_rows(quant, bits):
    """One integer per row: index of element k in bits [bits * k, bits * (k + 1))."""
    quant.init_grid()
    rows = quant.grid.reshape(quant.grid_shape)
    indices = np.searchsorted(np.array(quant.grid_map, dtype=np.float32), rows)
    packed = (indices << (bits * np.arange(rows.shape[1]))).sum(axis=1)
    assert (np.diff(packed) > 0).all()
    return packed


def main():
    print('#include "quant/types/iq_grids.h"\n')
    print("// Written by tools/make_iq_grids.py.")
    print("namespace hearth::quant {\n")
    print("// clang-format off")
    for name, quant, bits in GRIDS:
        packed = packed_rows(quant, bits)
        print(f"const std::array<std::uint16_t, {len(packed)}> {name}{{")
        for start in range(0, len(packed), 12):
            print("  " + ", ".join(f"0x{row:04x}" for row in packed[start : start + 12]) + ",")
        print("};\n")
    print("// clang-format on\n")
    print("}  // namespace hearth::quant")


if __name__ == "__main__":
    main()
