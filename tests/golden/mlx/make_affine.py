#!/usr/bin/env python3
"""Writes affine.bin beside this file: rows that mlx quantized, and what it decodes them to.

For scales in float32, float16 and bfloat16, for 2, 3, 4, 5, 6 and 8 bits and for groups of 32, 64 and
128, two rows of 128 weights: the packed codes, scales and biases as mlx stores them, then the 256 weights
as f32, decoded with scales and biases widened to float32, then the same decoded in the type of the scales
and widened afterwards.

    python3 tests/golden/mlx/make_affine.py
"""

import pathlib

import mlx.core as mx
import numpy as np

# Scales that quantizing does not give: zero, negative zero, subnormal, the largest, infinite, NaN.
SPECIAL = {
    mx.float32: [0.0, -0.0, 1e-45, 3.4028234e38, np.inf, np.nan],
    mx.float16: [0.0, -0.0, 6e-8, 65504.0, np.inf, np.nan],
    mx.bfloat16: [0.0, -0.0, 1e-40, 3.3895314e38, np.inf, np.nan],
}


def as_bytes(array):
    if array.dtype == mx.bfloat16:
        array = array.view(mx.uint16)
    return np.array(array).tobytes()


def widen(array):
    return array.astype(mx.float32)


def main():
    rng = np.random.default_rng(20261130)
    out = bytearray()
    for dtype in SPECIAL:
        for bits in (2, 3, 4, 5, 6, 8):
            for group in (32, 64, 128):
                weights = mx.array(rng.normal(size=(2, 128)).astype(np.float32)).astype(dtype)
                codes, scales, biases = mx.quantize(weights, group_size=group, bits=bits)
                special = mx.array(SPECIAL[dtype][(bits + group // 32) % 6], dtype=mx.float32)
                scales[1, -1] = special.astype(dtype)
                layout = {"group_size": group, "bits": bits}
                wide = mx.dequantize(codes, widen(scales), widen(biases), **layout)
                own = widen(mx.dequantize(codes, scales, biases, **layout))
                for array in (codes, scales, biases, wide, own):
                    out += as_bytes(array)
    (pathlib.Path(__file__).parent / "affine.bin").write_bytes(out)


if __name__ == "__main__":
    main()
