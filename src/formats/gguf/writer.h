#pragma once
/// Writes GGUF version 3 in the strict layout that every reader accepts: tensors in directory
/// order, each padded with zeros to the alignment.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor_view.h"

namespace hearth::formats {

/// Takes the next bytes of a tensor, in pieces of any size.
using ByteSink = std::function<Result<void>(Bytes)>;

/// A tensor whose data is made, or read, only when it is its turn to be written.
struct TensorToWrite {
  std::string name;  // 1 to 63 bytes
  DType dtype{};
  Shape shape;  // outermost first; outer unit dimensions are not stored
  /// Hands all quant::tensor_bytes(dtype, shape) bytes to the sink. Called once, tensors in order.
  std::function<Result<void>(const ByteSink&)> produce;
};

/// A tensor whose data lies in memory (or in a mapped file); borrows it.
TensorToWrite tensor_to_write(std::string name, const TensorView& view);

struct WriteOptions {
  /// Most tensor data per file, before padding; 0 writes one file. A larger tensor gets a file
  /// alone.
  std::uint64_t max_shard_bytes = 0;
};

/// Writes `path`, or `<stem>-00001-of-0000N.gguf` and so on beside it when the data exceeds
/// max_shard_bytes; returns the names. Files appear under their names only when all are complete.
/// The alignment is the metadata's general.alignment, or 32. general.architecture comes first, then
/// the keys in their order without split.*; general.quantization_version = 2 is added when a tensor
/// is quantized and the key is absent.
/// Errors: invalid_argument for a name, key, shape or type that no reader would accept, and for a
/// producer that hands over too few or too many bytes; io; whatever a producer returns. No partial
/// file is left behind.
Result<std::vector<std::filesystem::path>> write_gguf(const std::filesystem::path& path,
                                                      const Metadata& metadata,
                                                      std::span<const TensorToWrite> tensors,
                                                      const WriteOptions& options = {});

}  // namespace hearth::formats
