#!/usr/bin/env python3
"""Writes <type>.bin beside this file for every tensor type that decodes to floats.

A file is n blocks followed by their n * block_weights weights as f32. The weights are what the `gguf`
package decodes. It lacks F64, Q1_0 and Q2_0, whose formulas are written out below.

    python3 tests/golden/quant/make_golden.py
"""

import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

# Half scales that random bytes seldom are: zeros, subnormals, the largest, infinity, NaN.
SPECIAL_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0x7E00]

# Name: (offsets of the half scales) for the types that have some.
HALF_SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
    "IQ1_S": [0], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
    "Q1_0": [0], "Q2_0": [0],
}  # fmt: skip

OTHERS = ["F32", "F16", "BF16", "F64", "IQ1_M", "MXFP4", "NVFP4"]
SIZES_THE_PACKAGE_LACKS = {"Q1_0": (128, 18), "Q2_0": (64, 18)}


def sizes(name):
    return SIZES_THE_PACKAGE_LACKS.get(name) or gguf.GGML_QUANT_SIZES[Type[name]]


def decode(name, blocks):
    if name == "F64":
        return blocks.view(np.float64).astype(np.float32)
    if name in SIZES_THE_PACKAGE_LACKS:
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little")
        if name == "Q1_0":
            return np.where(bits == 1, scale, -scale)
        return scale * (bits[:, 0::2] + np.float32(2) * bits[:, 1::2] - 1).astype(np.float32)
    return gguf.quants.dequantize(blocks, Type[name])


def make_blocks(name, rng):
    block_weights, block_bytes = sizes(name)
    n_blocks = 12 if block_weights == 256 else 24 if block_weights > 1 else 256
    blocks = rng.integers(0, 256, size=(n_blocks, block_bytes), dtype=np.uint8)
    for i, special in enumerate(SPECIAL_HALVES):  # the other blocks keep their random scales
        for offset in HALF_SCALES.get(name, []):
            blocks[i, offset : offset + 2] = np.array([special], dtype=np.uint16).view(np.uint8)
    if name == "IQ1_M":
        for i, special in enumerate(SPECIAL_HALVES):
            for word in range(4):  # the low nibble of the scale is the top nibble of word 0
                high_byte = blocks[i, 49 + 2 * word]
                blocks[i, 49 + 2 * word] = (high_byte & 15) | (((special >> (4 * word)) & 15) << 4)
    if name == "MXFP4":
        blocks[:8, 0] = [0, 1, 2, 3, 252, 253, 254, 255]
    if name == "NVFP4":
        blocks[:2, :4] = [[0x00, 0x01, 0x07, 0x08], [0x7E, 0x7F, 0x80, 0xFF]]
    return blocks


def main():
    rng = np.random.default_rng(20261129)
    folder = pathlib.Path(__file__).parent
    for name in [*HALF_SCALES, *OTHERS]:
        blocks = make_blocks(name, rng)
        with np.errstate(all="ignore"):
            weights = decode(name, blocks).astype(np.float32)
        assert weights.size == blocks.shape[0] * sizes(name)[0]
        (folder / f"{name.lower()}.bin").write_bytes(blocks.tobytes() + weights.tobytes())


if __name__ == "__main__":
    main()
