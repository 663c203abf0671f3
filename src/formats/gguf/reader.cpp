#include "formats/gguf/reader.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "formats/gguf/split.h"

namespace hearth::formats {
namespace {

/// What shard 0 says about the split; a file that is no shard is the only one.
Result<Split> read_first_split(const Container& first, const std::string& name) {
  const Split whole{.n_tensors = static_cast<std::uint32_t>(first.tensors.size())};
  HEARTH_ASSIGN(const auto split, read_split(first.metadata));
  if (split && split->number != 0) {
    return fail(
        ErrorCode::invalid_argument,
        "{}: expected the first of {} shards, found shard {}; open the file that ends in {}", name,
        split->count, split->number + 1, shard_name("", 0, split->count));
  }
  return split.value_or(whole);
}

Result<void> check_split(const Container& shard, const Split& expected, const std::string& name) {
  HEARTH_ASSIGN(const auto found, read_split(shard.metadata));
  if (found != expected) {
    const auto actual = found.value_or(Split{});
    return fail(ErrorCode::invalid_file,
                "{}: expected shard {} of {} with {} tensors in all, found shard {} of {} with {}",
                name, expected.number + 1, expected.count, expected.n_tensors, actual.number + 1,
                actual.count, actual.n_tensors);
  }
  return {};
}

Result<void> check_total(std::size_t n_tensors, const Split& split, const std::string& name) {
  if (n_tensors != split.n_tensors) {
    return fail(ErrorCode::invalid_file, "{}: expected {} tensors in {} shards ({}), found {}",
                name, split.n_tensors, split.count, split_tensors_key, n_tensors);
  }
  return {};
}

}  // namespace

GgufFile::GgufFile(Container first, std::string name)
    : version_(first.version),
      alignment_(first.alignment),
      metadata_(std::move(first.metadata)),
      tensors_(std::move(first.tensors)),
      by_name_(std::move(first.by_name)) {
  shard_names_.push_back(std::move(name));
}

Result<void> GgufFile::add_shard(Container shard, std::string name) {
  for (GgufTensor& tensor : shard.tensors) {
    const auto [known, is_new] = by_name_.emplace(tensor.name, tensors_.size());
    if (!is_new) {
      return invalid(Place{name, "tensor", tensor.name, tensor.offset},
                     "expected each tensor in one shard, found it also in {}",
                     shard_name(tensors_[known->second].shard));
    }
    tensor.shard = static_cast<std::uint32_t>(n_shards());
    tensors_.push_back(tensor);
  }
  shard_names_.push_back(std::move(name));
  return {};
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  HEARTH_ASSIGN(auto mapping, MappedFile::open(path));
  HEARTH_ASSIGN(auto first, parse_container(mapping.bytes(), path.string()));
  HEARTH_ASSIGN(Split split, read_first_split(first, path.string()));
  GgufFile file(std::move(first), path.string());
  file.mappings_.push_back(std::move(mapping));
  if (split.count > 1) {
    HEARTH_ASSIGN(const auto prefix, shard_prefix(path, split.count));
    for (split.number = 1; split.number < split.count; ++split.number) {
      const auto name = formats::shard_name(prefix.string(), split.number, split.count);
      HEARTH_ASSIGN(auto shard_mapping, MappedFile::open(name));
      HEARTH_ASSIGN(auto shard, parse_container(shard_mapping.bytes(), name));
      HEARTH_TRY(check_split(shard, split, name));
      HEARTH_TRY(file.add_shard(std::move(shard), name));
      file.mappings_.push_back(std::move(shard_mapping));
    }
  }
  HEARTH_TRY(check_total(file.tensors_.size(), split, path.string()));
  return file;
}

Result<GgufFile> GgufFile::parse(Bytes bytes, std::string name) {
  HEARTH_ASSIGN(auto container, parse_container(bytes, name));
  HEARTH_ASSIGN(const Split split, read_first_split(container, name));
  if (split.count > 1) {
    return fail(ErrorCode::invalid_argument, "{}: expected a whole model, found one of {} shards",
                name, split.count);
  }
  HEARTH_TRY(check_total(container.tensors.size(), split, name));
  return GgufFile(std::move(container), std::move(name));
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace hearth::formats
