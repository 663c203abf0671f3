#include "model/checkpoint.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "model/huggingface/mtp_in_gguf.h"
#include "model/huggingface/open.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

/// Of the vision tower and its projector, which some files have beside the language model.
bool is_vision(std::string_view name) {
  return name.starts_with("v.") || name.starts_with("mm.");
}

Checkpoint::Parts parts_of(formats::GgufFile opened) {
  const auto file = std::make_shared<const formats::GgufFile>(std::move(opened));
  Checkpoint::Parts parts;
  parts.name = file->shard_name(0);
  parts.format = format("GGUF version {}", file->version());
  parts.metadata = formats::Metadata(file->metadata().file());
  for (const auto& entry : file->metadata().entries()) {
    HEARTH_ASSERT(parts.metadata.add_borrowed(entry));  // the reader refuses a second of a name
  }
  std::size_t n_vision = 0;
  for (const auto& tensor : file->tensors()) {
    if (is_vision(tensor.name)) {
      ++n_vision;
      continue;
    }
    parts.tensors.push_back({.name = std::string(tensor.name),
                             .dtype = tensor.dtype,
                             .shape = tensor.shape,
                             .shard = tensor.shard,
                             .mapped = tensor.data});
  }
  for (std::uint32_t shard = 0; shard < file->n_shards(); ++shard) {
    parts.shard_names.push_back(file->shard_name(shard));
  }
  parts.storage = file;
  if (n_vision > 0) {
    parts.notes.push_back(format("{} vision tensors (v.*, mm.*) are left out", n_vision));
  }
  adopt_mtp_tensors(parts);
  return parts;
}

}  // namespace

std::int64_t CheckpointTensor::n_bytes() const {
  return *quant::tensor_bytes(dtype, shape);
}

Result<void> CheckpointTensor::produce(const formats::ByteSink& sink) const {
  return make ? make(sink) : sink(mapped);
}

Result<Buffer> CheckpointTensor::copy() const {
  Buffer buffer(n_bytes());
  std::size_t filled = 0;
  HEARTH_TRY(produce([&](Bytes bytes) -> Result<void> {
    HEARTH_ASSERT(bytes.size() <= buffer.bytes().size() - filled);
    std::ranges::copy(bytes, buffer.bytes().subspan(filled).begin());
    filled += bytes.size();
    return {};
  }));
  HEARTH_ASSERT(filled == buffer.bytes().size());
  return buffer;
}

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path, ExpertLayout experts) {
  std::error_code ignored;  // whoever opens it will say it better
  if (std::filesystem::is_directory(path, ignored)) {
    return open_huggingface_folder(path, experts);
  }
  HEARTH_ASSIGN(auto file, formats::GgufFile::open(path));
  return Checkpoint(std::move(file));
}

Checkpoint::Checkpoint(formats::GgufFile file) : Checkpoint(parts_of(std::move(file))) {}

Checkpoint::Checkpoint(Parts parts) : parts_(std::move(parts)) {
  for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
    HEARTH_ASSERT(by_name_.emplace(parts_.tensors[i].name, i).second);
  }
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &parts_.tensors[found->second];
}

}  // namespace hearth::model
