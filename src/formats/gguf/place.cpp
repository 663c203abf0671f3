#include "formats/gguf/place.h"

#include <cstddef>

namespace hearth::formats {

std::string in_quotes(std::string_view bytes) {
  constexpr std::size_t longest = 80;
  std::string text = "\"";
  for (const char c : bytes.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      text += format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text + (bytes.size() > longest ? "...\"" : "\"");
}

std::string to_string(const Place& place) {
  std::string text(place.file);
  if (!place.kind.empty()) {
    text += format("{}{}", text.empty() ? "" : ": ", place.kind);
  }
  if (!place.name.empty()) {
    text += " " + in_quotes(place.name);
  }
  // Without a file there is nothing to count bytes in: metadata that is being put together.
  return place.file.empty() || !place.offset ? text : format("{} at byte {}", text, *place.offset);
}

}  // namespace hearth::formats
