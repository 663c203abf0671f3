#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hearth::model {

/// A tensor under its canonical name, which is GGUF's, in the layout that goes with that name.
struct CheckpointTensor {
  std::string name;
  DType dtype{};
  Shape shape;            // outermost first
  std::uint32_t shard{};  // which file it comes from, see Checkpoint::shard_name()
  Bytes mapped;           // the data, where it lies in a file as it is; else empty
  /// Makes the data piece by piece, where it is not mapped.
  std::function<Result<void>(const formats::ByteSink&)> make;

  [[nodiscard]] std::int64_t n_bytes() const;
  /// Hands all of the data to the sink, in pieces when it has to be made. Thread-safe.
  /// Errors: those of the sink; invalid_file for data that cannot be converted.
  Result<void> produce(const formats::ByteSink& sink) const;
  /// A copy of the data, for data that has to be made.
  [[nodiscard]] Result<Buffer> copy() const;
};

/// How the gate and up matrices of experts come, where files have them in one tensor.
enum class ExpertLayout : std::uint8_t {
  split,   // ffn_gate_exps and ffn_up_exps, as GGUF files usually have them
  stored,  // ffn_gate_up_exps where they are fused, so that nothing has to be copied
};

/// What a model consists of, from whatever files: metadata with the keys of GGUF and tensors with
/// its names. The one source of running and of converting. Data stays in the mapped files.
/// Everything it hands out lives as long as it (moving it is fine). Reading is thread-safe.
class Checkpoint {
 public:
  /// The parts of a checkpoint, for those who put one together.
  struct Parts {
    std::string name;            // of the file or folder
    std::string format;          // for people: "GGUF version 3"
    formats::Metadata metadata;  // may borrow from `storage`
    std::vector<CheckpointTensor> tensors;
    std::vector<std::string> shard_names;
    std::vector<std::string> notes;  // what was left out or changed on the way, a sentence each
    std::shared_ptr<const void> storage;  // keeps alive what the others borrow
  };

  /// A GGUF file (of a split model, the first) or a Hugging Face folder. Of a GGUF file vision
  /// tensors are left out and an MTP head gets its usual names; all else stays as it is.
  /// Errors: those of GgufFile::open and of open_huggingface_folder.
  static Result<Checkpoint> open(const std::filesystem::path& path,
                                 ExpertLayout experts = ExpertLayout::split);

  explicit Checkpoint(formats::GgufFile file);
  /// Tensors have names of their own.
  explicit Checkpoint(Parts parts);
  [[nodiscard]] Parts take_apart() && { return std::move(parts_); }

  [[nodiscard]] const std::string& name() const { return parts_.name; }
  [[nodiscard]] const std::string& format() const { return parts_.format; }
  [[nodiscard]] const formats::Metadata& metadata() const { return parts_.metadata; }
  [[nodiscard]] std::span<const CheckpointTensor> tensors() const { return parts_.tensors; }
  /// nullptr when there is none of this name.
  [[nodiscard]] const CheckpointTensor* find(std::string_view name) const;
  [[nodiscard]] std::span<const std::string> notes() const { return parts_.notes; }

  [[nodiscard]] std::size_t n_shards() const { return parts_.shard_names.size(); }
  [[nodiscard]] const std::string& shard_name(std::uint32_t shard) const {
    return parts_.shard_names[shard];
  }

 private:
  Parts parts_;
  std::map<std::string_view, std::size_t> by_name_;
};

}  // namespace hearth::model
