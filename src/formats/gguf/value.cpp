#include "formats/gguf/value.h"

#include <type_traits>

#include "base/format.h"

namespace hearth::formats {

std::string describe(const Value& value) {
  const auto name = name_of(type_of(value));
  return std::visit(
      [name](const auto& held) -> std::string {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, Array>) {
          return format("array of {} {}", held.count, name_of(held.element_type));
        } else if constexpr (std::is_same_v<Held, std::string_view>) {
          return std::string(name);
        } else {
          return format("{} {}", name, held);
        }
      },
      value);
}

}  // namespace hearth::formats
