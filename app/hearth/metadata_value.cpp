#include "metadata_value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/format.h"
#include "base/utf8.h"
#include "printable.h"

namespace hearth::app {
namespace {

using formats::Array;
using nlohmann::ordered_json;

constexpr std::uint64_t max_elements = 6;
constexpr std::size_t max_string_bytes = 72;
constexpr std::size_t max_element_bytes = 16;

/// Calls `use` with the first elements of an array, as the C++ type that stores them.
template <class Use>
void for_first_elements(const Array& array, Use&& use) {
  const std::uint64_t n = std::min(array.count, max_elements);
  if (array.element_type == formats::ValueType::string) {
    const auto* at = array.bytes.data();
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto length = load<std::uint64_t>(at);
      use(std::string_view(reinterpret_cast<const char*>(at + sizeof length), length));
      at += sizeof length + length;
    }
    return;
  }
  formats::with_number_type(array.element_type, [&]<class Number>(Number) {
    for (std::uint64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<Number, bool>) {
        use(load<std::uint8_t>(array.bytes.data(), i) != 0);
      } else {
        use(load<Number>(array.bytes.data(), i * sizeof(Number)));
      }
    }
  });
}

template <class Scalar>
std::string scalar_text(Scalar value, std::size_t max_bytes) {
  if constexpr (std::is_same_v<Scalar, std::string_view>) {
    return printable(value, max_bytes);
  } else {
    return format("{}", value);
  }
}

template <class Scalar>
ordered_json scalar_json(Scalar value) {
  if constexpr (std::is_same_v<Scalar, std::string_view>) {
    return replace_invalid_utf8(value);
  } else {
    return value;
  }
}

std::string array_text(const Array& array) {
  std::string elements;
  for_first_elements(array, [&](auto element) {
    elements += (elements.empty() ? "" : ", ") + scalar_text(element, max_element_bytes);
  });
  return format("[{}{}] {} x {}", elements, array.count > max_elements ? ", ..." : "", array.count,
                formats::name_of(array.element_type));
}

ordered_json array_json(const Array& array) {
  ordered_json first = ordered_json::array();
  for_first_elements(array, [&](auto element) { first.push_back(scalar_json(element)); });
  return {{"element_type", formats::name_of(array.element_type)},
          {"count", array.count},
          {"first", std::move(first)}};
}

}  // namespace

std::string to_text(const formats::Value& value) {
  return std::visit(
      []<class T>(const T& content) {
        if constexpr (std::is_same_v<T, Array>) {
          return array_text(content);
        } else {
          return scalar_text(content, max_string_bytes);
        }
      },
      value);
}

ordered_json to_json(const formats::Value& value) {
  return std::visit(
      []<class T>(const T& content) {
        if constexpr (std::is_same_v<T, Array>) {
          return array_json(content);
        } else {
          return scalar_json(content);
        }
      },
      value);
}

}  // namespace hearth::app
