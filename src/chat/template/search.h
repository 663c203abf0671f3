#pragma once
/// Substring search whose worst case is linear, so that hostile text cannot make a template slow.

#include <cstddef>
#include <optional>
#include <string_view>

namespace hearth::chat {

/// The first match of `needle` that starts at or after `from` (<= haystack.size()).
[[nodiscard]] std::optional<std::size_t> find_bytes(std::string_view haystack,
                                                    std::string_view needle, std::size_t from);

/// The last match of `needle` that ends at or before `end` (<= haystack.size()).
[[nodiscard]] std::optional<std::size_t> find_last_bytes(std::string_view haystack,
                                                         std::string_view needle, std::size_t end);

}  // namespace hearth::chat
