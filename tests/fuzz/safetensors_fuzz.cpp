/// Any bytes are a safetensors file or an error; what a file hands out can all be read.

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "formats/safetensors/container.h"

namespace hearth::formats {
namespace {

void read(Bytes bytes) {
  const auto file = parse_safetensors(bytes, "fuzz.safetensors");
  if (!file) {
    HEARTH_ASSERT(file.error().message.starts_with("fuzz.safetensors: "));
    return;
  }
  HEARTH_ASSERT(file->by_name.size() == file->tensors.size());
  std::uint64_t n_bytes = 0;
  for (const auto& tensor : file->tensors) {
    HEARTH_ASSERT(tensor.data.data() == bytes.data() + tensor.offset);
    HEARTH_ASSERT(tensor.offset + tensor.data.size() <= bytes.size());
    n_bytes += tensor.data.size();
  }
  HEARTH_ASSERT(n_bytes < bytes.size());
}

}  // namespace
}  // namespace hearth::formats

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hearth::formats::read({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
