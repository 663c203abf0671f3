"""Writes the files of this folder with the `gguf` package: python3 make_golden.py (see PROVENANCE.md)."""

from pathlib import Path

import gguf
import numpy as np
from gguf import GGUFEndian, GGUFValueType, GGUFWriter

FOLDER = Path(__file__).parent


def add_every_value_type(writer: GGUFWriter) -> None:
    writer.add_uint8("t.u8", 200)
    writer.add_int8("t.i8", -100)
    writer.add_uint16("t.u16", 60000)
    writer.add_int16("t.i16", -30000)
    writer.add_uint32("t.u32", 4000000000)
    writer.add_int32("t.i32", -2000000000)
    writer.add_float32("t.f32", 0.15625)
    writer.add_bool("t.bool", True)
    writer.add_string("t.string", "Grüße, 世界")
    writer.add_uint64("t.u64", 2**63 + 5)
    writer.add_int64("t.i64", -(2**62))
    writer.add_float64("t.f64", 0.1)
    writer.add_array("t.strings", ["", "a", "日本"])
    writer.add_array("t.i32s", [1, -2, 3])
    writer.add_array("t.f32s", [0.5, -0.25])
    writer.add_array("t.bools", [True, False])
    writer.add_key_value("t.u8s", [1, 2, 255], GGUFValueType.ARRAY, sub_type=GGUFValueType.UINT8)


def add_tensors(writer: GGUFWriter) -> None:
    counting = np.arange(6 * 32, dtype=np.float32)
    writer.add_tensor("vector", counting[:5])
    writer.add_tensor("matrix", counting[:12].reshape(3, 4).astype(np.float16))
    writer.add_tensor("experts", counting[:24].reshape(2, 3, 4).astype(np.int32))
    quantized = gguf.quants.quantize(counting.reshape(2, 3, 32), gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("quantized", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)


def write(writer: GGUFWriter, name: str) -> None:
    writer.write_header_to_file(FOLDER / name)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    sample = GGUFWriter(None, "test")
    add_every_value_type(sample)
    add_tensors(sample)
    write(sample, "sample.gguf")

    aligned = GGUFWriter(None, "test")
    aligned.add_custom_alignment(128)
    add_tensors(aligned)
    write(aligned, "aligned.gguf")

    split = GGUFWriter(None, "test", split_max_tensors=2)
    add_tensors(split)
    write(split, "split.gguf")

    big_endian = GGUFWriter(None, "test", False, GGUFEndian.BIG)
    write(big_endian, "big-endian.gguf")


if __name__ == "__main__":
    main()
