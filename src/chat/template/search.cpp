#include "chat/template/search.h"

#include <algorithm>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

// Up to this length the plain search compares at most so many bytes per position.
constexpr std::size_t short_needle_bytes = 16;

/// failure[i]: the length of the longest proper prefix of the needle that is a suffix of its first
/// i + 1 bytes. Source: Knuth, Morris, Pratt 1977, "Fast pattern matching in strings".
std::vector<std::size_t> failure_table(std::string_view needle) {
  std::vector<std::size_t> failure(needle.size(), 0);
  std::size_t matched = 0;
  for (std::size_t i = 1; i < needle.size(); ++i) {
    while (matched > 0 && needle[i] != needle[matched]) {
      matched = failure[matched - 1];
    }
    matched += needle[i] == needle[matched] ? 1 : 0;
    failure[i] = matched;
  }
  return failure;
}

std::optional<std::size_t> find_long(std::string_view haystack, std::string_view needle,
                                     std::size_t from) {
  const auto failure = failure_table(needle);
  std::size_t matched = 0;
  for (std::size_t i = from; i < haystack.size(); ++i) {
    while (matched > 0 && haystack[i] != needle[matched]) {
      matched = failure[matched - 1];
    }
    matched += haystack[i] == needle[matched] ? 1 : 0;
    if (matched == needle.size()) {
      return i + 1 - needle.size();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> find_bytes(std::string_view haystack, std::string_view needle,
                                      std::size_t from) {
  if (needle.size() > haystack.size() - from) {
    return std::nullopt;
  }
  if (needle.size() > short_needle_bytes) {
    return find_long(haystack, needle, from);
  }
  const std::size_t at = haystack.find(needle, from);
  return at == std::string_view::npos ? std::nullopt : std::optional(at);
}

std::optional<std::size_t> find_last_bytes(std::string_view haystack, std::string_view needle,
                                           std::size_t end) {
  haystack = haystack.substr(0, end);
  if (needle.size() <= short_needle_bytes) {
    const std::size_t at = haystack.rfind(needle);
    return at == std::string_view::npos ? std::nullopt : std::optional(at);
  }
  const std::string reversed_haystack(haystack.rbegin(), haystack.rend());
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const auto at = find_bytes(reversed_haystack, reversed_needle, 0);
  return at ? std::optional(haystack.size() - *at - needle.size()) : std::nullopt;
}

}  // namespace hearth::chat
