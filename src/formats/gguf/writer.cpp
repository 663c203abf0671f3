#include "formats/gguf/writer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/output_file.h"
#include "formats/gguf/encoder.h"
#include "formats/gguf/layout.h"
#include "formats/gguf/place.h"
#include "formats/gguf/split.h"
#include "quant/registry.h"

namespace hearth::formats {
namespace {

constexpr std::string_view architecture_key = "general.architecture";
constexpr std::string_view quantization_version_key = "general.quantization_version";
constexpr std::uint32_t quantization_version = 2;  // of every current block layout

using Entries = std::vector<Metadata::Entry>;

/// Bytes of the tensor, checked as a reader will check them.
Result<std::uint64_t> checked_size(const TensorToWrite& tensor) {
  const auto refuse = [&tensor](std::string_view expected) {
    return fail(ErrorCode::invalid_argument, "tensor {}: expected {}, found type {} and shape {}",
                in_quotes(tensor.name), expected, static_cast<int>(tensor.dtype),
                to_string(tensor.shape));
  };
  if (tensor.name.empty() || tensor.name.size() > max_tensor_name_written) {
    return fail(ErrorCode::invalid_argument,
                "tensor {}: expected a name of 1 to {} bytes, found {}", in_quotes(tensor.name),
                max_tensor_name_written, tensor.name.size());
  }
  if (quant::find_id(static_cast<std::uint32_t>(tensor.dtype)) == nullptr) {
    return refuse("a known type");
  }
  const auto dims = tensor.shape.dims();
  if (dims.empty() || std::any_of(dims.begin(), dims.end(), [](auto dim) { return dim < 1; })) {
    return refuse("1 to 4 dimensions of at least 1");
  }
  const auto n_bytes = quant::tensor_bytes(tensor.dtype, tensor.shape);
  if (!n_bytes) {
    return refuse("rows of whole blocks and fewer than 2^63 bytes");
  }
  return static_cast<std::uint64_t>(*n_bytes);
}

Result<std::vector<std::uint64_t>> checked_sizes(std::span<const TensorToWrite> tensors) {
  std::vector<std::uint64_t> sizes;
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    HEARTH_ASSIGN(sizes.emplace_back(), checked_size(tensor));
    if (!names.insert(tensor.name).second) {
      return fail(ErrorCode::invalid_argument, "tensor {}: expected each name once, found a second",
                  in_quotes(tensor.name));
    }
  }
  return sizes;
}

Result<void> check_keys(const Metadata& metadata) {
  for (const auto& entry : metadata.entries()) {
    if (!is_valid_key(entry.key)) {
      return fail(ErrorCode::invalid_argument,
                  "key {}: expected 1 to {} bytes of printable ASCII, found {} bytes",
                  in_quotes(entry.key), max_key_length, entry.key.size());
    }
  }
  return {};
}

bool is_split_key(std::string_view key) {
  return key == split_number_key || key == split_count_key || key == split_tensors_key;
}

/// The keys of a model, without those that say how it was split.
Entries model_keys(const Metadata& metadata, std::span<const TensorToWrite> tensors) {
  Entries keys;
  std::copy_if(metadata.entries().begin(), metadata.entries().end(), std::back_inserter(keys),
               [](const auto& entry) { return !is_split_key(entry.key); });
  const auto architecture = std::find_if(
      keys.begin(), keys.end(), [](const auto& entry) { return entry.key == architecture_key; });
  if (architecture != keys.end()) {
    std::rotate(keys.begin(), architecture, architecture + 1);
  }
  const bool is_quantized = std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return quant::info(tensor.dtype).block_weights > 1;
  });
  if (is_quantized && metadata.entry(quantization_version_key) == nullptr) {
    keys.push_back({quantization_version_key, quantization_version});
  }
  return keys;
}

/// A run of tensors that goes into one file.
struct Shard {
  std::size_t begin{};
  std::size_t end{};
};

std::vector<Shard> plan_shards(std::span<const std::uint64_t> sizes, std::uint64_t max_bytes) {
  std::vector<Shard> shards(1);
  std::uint64_t room = max_bytes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (max_bytes != 0 && sizes[i] > room && shards.back().end > shards.back().begin) {
      shards.push_back({i, i});
      room = max_bytes;
    }
    room -= std::min(room, sizes[i]);
    shards.back().end = i + 1;
  }
  return shards;
}

/// One call of write_gguf.
struct Job {
  std::span<const TensorToWrite> tensors;
  std::vector<std::uint64_t> sizes;
  std::vector<Shard> shards;
  Entries keys;
  std::uint32_t alignment{};
};

Entries shard_keys(const Job& job, std::size_t number) {
  Entries keys;
  if (number == 0) {
    keys = job.keys;
  } else if (job.alignment != default_alignment) {
    keys.push_back({alignment_key, job.alignment});
  }
  if (job.shards.size() > 1) {
    keys.push_back({split_number_key, static_cast<std::uint16_t>(number)});
    keys.push_back({split_count_key, static_cast<std::uint16_t>(job.shards.size())});
    keys.push_back({split_tensors_key, static_cast<std::int32_t>(job.tensors.size())});
  }
  return keys;
}

Result<std::vector<DirectoryEntry>> shard_directory(const Job& job, const Shard& shard) {
  std::vector<DirectoryEntry> directory;
  std::uint64_t offset = 0;
  for (std::size_t i = shard.begin; i < shard.end; ++i) {
    const auto& tensor = job.tensors[i];
    directory.push_back({tensor.name, tensor.dtype, tensor.shape, offset});
    const auto end = checked_add(offset, job.sizes[i]);
    const auto padded = end ? checked_round_up(*end, job.alignment) : std::nullopt;
    if (!padded) {
      return fail(ErrorCode::invalid_argument,
                  "tensor {}: expected fewer than 2^64 bytes in a file", in_quotes(tensor.name));
    }
    offset = *padded;
  }
  return directory;
}

Result<void> write_tensor(OutputFile& file, const TensorToWrite& tensor, std::uint64_t n_bytes) {
  const auto end = file.size() + n_bytes;
  const auto refuse = [&](std::uint64_t found, std::string_view more) {
    return fail(ErrorCode::invalid_argument, "{}: tensor {}: expected {} bytes, found {}{}",
                file.path().string(), in_quotes(tensor.name), n_bytes, found, more);
  };
  HEARTH_TRY(tensor.produce([&](Bytes bytes) -> Result<void> {
    if (bytes.size() > end - file.size()) {
      return refuse(n_bytes - (end - file.size()) + bytes.size(), " or more");
    }
    return file.write(bytes);
  }));
  if (file.size() != end) {
    return refuse(n_bytes - (end - file.size()), "");
  }
  return {};
}

Result<OutputFile> write_shard(const std::filesystem::path& path, const Job& job,
                               std::size_t number) {
  const Shard& shard = job.shards[number];
  HEARTH_ASSIGN(const auto directory, shard_directory(job, shard));
  const auto head = encode_head(shard_keys(job, number), directory);
  HEARTH_ASSIGN(auto file, OutputFile::create(path));
  HEARTH_TRY(file.write(std::as_bytes(std::span(head))));
  HEARTH_TRY(file.pad(job.alignment));
  for (std::size_t i = shard.begin; i < shard.end; ++i) {
    HEARTH_TRY(write_tensor(file, job.tensors[i], job.sizes[i]));
    HEARTH_TRY(file.pad(job.alignment));
  }
  HEARTH_TRY(file.close());
  return file;
}

std::filesystem::path shard_path(const std::filesystem::path& path, std::size_t number,
                                 std::size_t count) {
  return count == 1 ? path
                    : path.parent_path() / shard_name(path.stem().string(),
                                                      static_cast<std::uint32_t>(number),
                                                      static_cast<std::uint32_t>(count));
}

}  // namespace

TensorToWrite tensor_to_write(std::string name, const TensorView& view) {
  return {.name = std::move(name),
          .dtype = view.dtype,
          .shape = view.shape,
          .produce = [data = view.data](const ByteSink& sink) { return sink(data); }};
}

Result<std::vector<std::filesystem::path>> write_gguf(const std::filesystem::path& path,
                                                      const Metadata& metadata,
                                                      std::span<const TensorToWrite> tensors,
                                                      const WriteOptions& options) {
  Job job;
  job.tensors = tensors;
  HEARTH_TRY(check_keys(metadata));
  HEARTH_ASSIGN(job.alignment, alignment_of(metadata));
  HEARTH_ASSIGN(job.sizes, checked_sizes(tensors));
  job.keys = model_keys(metadata, tensors);
  job.shards = plan_shards(job.sizes, options.max_shard_bytes);
  if (job.shards.size() > max_shards) {
    return fail(ErrorCode::invalid_argument, "{}: expected at most {} files, found {}",
                path.string(), max_shards, job.shards.size());
  }
  std::vector<OutputFile> files;
  for (std::size_t number = 0; number < job.shards.size(); ++number) {
    HEARTH_ASSIGN(auto file, write_shard(shard_path(path, number, job.shards.size()), job, number));
    files.push_back(std::move(file));
  }
  std::vector<std::filesystem::path> paths;
  for (auto& file : files) {
    HEARTH_TRY(file.commit());
    paths.push_back(file.path());
  }
  return paths;
}

}  // namespace hearth::formats
