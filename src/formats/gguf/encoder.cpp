#include "formats/gguf/encoder.h"

#include <type_traits>
#include <variant>

#include "formats/gguf/layout.h"

namespace hearth::formats {
namespace {

template <class T>
void put(std::string& out, T number) {
  char bytes[sizeof(T)];
  store(bytes, number);
  out.append(bytes, sizeof bytes);
}

void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

void put_value(std::string& out, const Value& value) {
  put(out, static_cast<std::uint32_t>(type_of(value)));
  std::visit(
      [&out](const auto& held) {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string_view>) {
          put_string(out, held);
        } else if constexpr (std::is_same_v<Held, Array>) {
          put(out, static_cast<std::uint32_t>(held.element_type));
          put(out, held.count);
          out.append(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
        } else {
          put(out, held);
        }
      },
      value);
}

void put_shape(std::string& out, const Shape& shape) {
  int outermost = 0;
  while (outermost + 1 < shape.rank() && shape[outermost] == 1) {
    ++outermost;
  }
  put(out, static_cast<std::uint32_t>(shape.rank() - outermost));
  for (int axis = shape.rank() - 1; axis >= outermost; --axis) {
    put(out, shape[axis]);
  }
}

}  // namespace

std::string encode_head(std::span<const Metadata::Entry> keys,
                        std::span<const DirectoryEntry> directory) {
  std::string out(gguf_magic);
  put(out, newest_gguf_version);
  put<std::uint64_t>(out, directory.size());
  put<std::uint64_t>(out, keys.size());
  for (const auto& entry : keys) {
    put_string(out, entry.key);
    put_value(out, entry.value);
  }
  for (const auto& tensor : directory) {
    put_string(out, tensor.name);
    put_shape(out, tensor.shape);
    put(out, static_cast<std::uint32_t>(tensor.dtype));
    put(out, tensor.offset);
  }
  return out;
}

}  // namespace hearth::formats
