#include "tokenizer/charsmap.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace hearth::tokenizer {
namespace {

constexpr std::size_t max_match_bytes = 256;  // a broken trie may go in circles

constexpr std::size_t max_replacement_bytes = 256;  // bounds how much a text can grow

// Bit fields of a node.
std::uint32_t offset_of(std::uint32_t node) {
  return (node >> 10) << ((node & 0x200u) >> 6);
}
std::uint32_t label_of(std::uint32_t node) {
  return node & 0x800000ffu;
}
bool has_leaf(std::uint32_t node) {
  return (node & 0x100u) != 0;
}
std::uint32_t value_of(std::uint32_t leaf) {
  return leaf & 0x7fffffffu;
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) {
    return map;
  }
  if (bytes.size() < sizeof(std::uint32_t)) {
    return fail(ErrorCode::invalid_file, "precompiled_charsmap: {} bytes, expected at least 4",
                bytes.size());
  }
  const std::size_t trie_bytes = load<std::uint32_t>(bytes.data());
  bytes.remove_prefix(sizeof(std::uint32_t));
  if (trie_bytes > bytes.size() || trie_bytes % sizeof(std::uint32_t) != 0) {
    return fail(ErrorCode::invalid_file,
                "precompiled_charsmap: a trie of {} bytes, expected a multiple of 4 of at most {}",
                trie_bytes, bytes.size());
  }
  map.nodes_.resize(trie_bytes / sizeof(std::uint32_t));
  if (trie_bytes > 0) {
    std::memcpy(map.nodes_.data(), bytes.data(), trie_bytes);
  }
  const std::string_view replacements = bytes.substr(trie_bytes);
  if (!replacements.empty() && replacements.back() != '\0') {
    return fail(ErrorCode::invalid_file,
                "precompiled_charsmap: the last replacement does not end with a zero byte");
  }
  for (std::size_t begin = 0; begin < replacements.size();) {
    const std::size_t end = replacements.find('\0', begin);
    if (end - begin > max_replacement_bytes) {
      return fail(ErrorCode::invalid_file,
                  "precompiled_charsmap: a replacement of {} bytes, at most {} are allowed",
                  end - begin, max_replacement_bytes);
    }
    begin = end + 1;
  }
  map.replacements_.assign(replacements.begin(), replacements.end());
  return map;
}

std::string Charsmap::normalize(std::string_view text) const {
  std::string normalized;
  normalized.reserve(text.size());
  while (!text.empty()) {
    if (const std::optional<Replacement> replacement = longest_match(text)) {
      normalized.append(replacement->text);
      text.remove_prefix(replacement->length);
    } else {
      const std::uint8_t n_bytes = decode_utf8(text).n_bytes;
      normalized.append(text.substr(0, n_bytes));
      text.remove_prefix(n_bytes);
    }
  }
  return normalized;
}

// Offsets come from the file: a step that leaves the arrays ends the search.
std::optional<Charsmap::Replacement> Charsmap::longest_match(std::string_view text) const {
  std::optional<Replacement> longest;
  if (nodes_.empty()) {
    return longest;
  }
  std::size_t position = offset_of(nodes_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), max_match_bytes); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    position ^= byte;
    if (byte == 0 || position >= nodes_.size() || label_of(nodes_[position]) != byte) {
      break;
    }
    const std::uint32_t node = nodes_[position];
    position ^= offset_of(node);
    if (!has_leaf(node)) {
      continue;
    }
    if (position >= nodes_.size() || value_of(nodes_[position]) >= replacements_.size()) {
      break;
    }
    longest = Replacement{i + 1, replacements_.data() + value_of(nodes_[position])};
  }
  return longest;
}

}  // namespace hearth::tokenizer
