"""Our writer against the reference reader: read_back_test.py PATH_OF_HEARTH_GGUF_SAMPLE."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import gguf
    import numpy as np
except ImportError:
    print("the gguf package is not installed")
    sys.exit(77)

VALUES = {
    "general.architecture": "test",
    "general.quantization_version": 2,
    "t.u8": 200,
    "t.i8": -100,
    "t.u16": 60000,
    "t.i16": -30000,
    "t.u32": 4000000000,
    "t.i32": -2000000000,
    "t.f32": 0.15625,
    "t.bool": True,
    "t.string": "Grüße, 世界",
    "t.u64": 2**63 + 5,
    "t.i64": -(2**62),
    "t.f64": 0.1,
    "t.strings": ["", "a", "日本"],
    "t.i32s": [1, -2, 3],
    "t.bools": [True, False],
}


def write_sample(*options: str) -> tuple[tempfile.TemporaryDirectory, list[str]]:
    folder = tempfile.TemporaryDirectory()
    command = [PROGRAM, str(Path(folder.name) / "sample.gguf"), *options]
    written = subprocess.run(command, check=True, capture_output=True, text=True)
    return folder, written.stdout.splitlines()


def tensors_by_name(reader: gguf.GGUFReader) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in reader.tensors}


class ReadBack(unittest.TestCase):
    def test_the_reference_reader_reads_every_value(self):
        folder, (path,) = write_sample()
        with folder:
            reader = gguf.GGUFReader(path)
            self.assertEqual(reader.alignment, 64)
            for key, expected in VALUES.items():
                self.assertEqual(reader.get_field(key).contents(), expected, key)

    def test_the_reference_reader_reads_every_tensor(self):
        folder, (path,) = write_sample()
        with folder:
            tensors = tensors_by_name(gguf.GGUFReader(path))
            self.assertEqual(list(tensors), ["vector", "experts", "quantized"])
            counting = np.arange(24, dtype=np.float32)
            np.testing.assert_array_equal(tensors["vector"].data, counting[:5])
            np.testing.assert_array_equal(tensors["experts"].data, counting.reshape(2, 3, 4))
            self.assertEqual(list(tensors["experts"].shape), [4, 3, 2])
            quantized = tensors["quantized"]
            weights = gguf.quants.dequantize(quantized.data, quantized.tensor_type)
            np.testing.assert_array_equal(weights, [np.arange(32, dtype=np.float32) / 2] * 2)

    def test_the_reference_reader_reads_every_shard(self):
        folder, paths = write_sample("120")
        with folder:
            names = [Path(path).name for path in paths]
            self.assertEqual(names, ["sample-00001-of-00002.gguf", "sample-00002-of-00002.gguf"])
            found = []
            for number, path in enumerate(paths):
                reader = gguf.GGUFReader(path)
                self.assertEqual(reader.get_field("split.no").contents(), number)
                self.assertEqual(reader.get_field("split.count").contents(), 2)
                self.assertEqual(reader.get_field("split.tensors.count").contents(), 3)
                found += list(tensors_by_name(reader))
            self.assertEqual(found, ["vector", "experts", "quantized"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
