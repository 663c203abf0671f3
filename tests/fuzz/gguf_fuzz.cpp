/// Any bytes are a GGUF file or an error; what a file hands out can all be read.

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "formats/gguf/reader.h"
#include "formats/gguf/tensor_check.h"

namespace hearth::formats {
namespace {

template <class T>
void ask(const Metadata& metadata, std::string_view key) {
  const bool is_there = metadata.entry(key) != nullptr;
  const auto value = metadata.find<T>(key);
  HEARTH_ASSERT(!value || value->has_value() == is_there);
  const auto elements = metadata.find_array<T>(key);
  HEARTH_ASSERT(!elements || elements->has_value() == is_there);
}

void ask_for_every_type(const Metadata& metadata) {
  for (const auto& entry : metadata.entries()) {
    ask<std::int8_t>(metadata, entry.key);
    ask<std::uint32_t>(metadata, entry.key);
    ask<std::int64_t>(metadata, entry.key);
    ask<float>(metadata, entry.key);
    ask<bool>(metadata, entry.key);
    ask<std::string_view>(metadata, entry.key);
    HEARTH_ASSERT(!metadata.find_bytes(entry.key) || std::get_if<Array>(&entry.value) != nullptr);
    HEARTH_ASSERT(!describe(entry.value).empty());
  }
}

void read_every_tensor(const GgufFile& file, Bytes bytes) {
  for (const auto& tensor : file.tensors()) {
    HEARTH_ASSERT(file.find(tensor.name) == &tensor);
    HEARTH_ASSERT(tensor.data.data() == bytes.data() + tensor.offset);
    HEARTH_ASSERT(tensor.offset + tensor.data.size() <= bytes.size());
    const auto checked = check_tensor_data(tensor, "fuzz.gguf");
    HEARTH_ASSERT(checked || !checked.error().message.empty());
  }
}

void read(Bytes bytes) {
  const auto file = GgufFile::parse(bytes, "fuzz.gguf");
  if (!file) {
    HEARTH_ASSERT(file.error().message.starts_with("fuzz.gguf: "));
    return;
  }
  ask_for_every_type(file->metadata());
  read_every_tensor(*file, bytes);
}

}  // namespace
}  // namespace hearth::formats

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hearth::formats::read({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
