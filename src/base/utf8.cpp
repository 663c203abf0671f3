#include "base/utf8.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"

namespace hearth {
namespace {

/// What may follow a lead byte (Unicode Standard, table 3-7). Only the second byte has a narrower
/// range; the later ones are 80..BF. `length` is 0 for a byte that cannot lead.
struct Lead {
  std::uint8_t length;
  std::uint8_t second_min;
  std::uint8_t second_max;
};

constexpr Lead classify(std::uint8_t lead) {
  if (lead < 0x80) {
    return {1, 0, 0};
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return {0, 0, 0};
  }
  if (lead < 0xe0) {
    return {2, 0x80, 0xbf};
  }
  if (lead < 0xf0) {
    return {3, lead == 0xe0 ? std::uint8_t{0xa0} : std::uint8_t{0x80},
            lead == 0xed ? std::uint8_t{0x9f} : std::uint8_t{0xbf}};
  }
  return {4, lead == 0xf0 ? std::uint8_t{0x90} : std::uint8_t{0x80},
          lead == 0xf4 ? std::uint8_t{0x8f} : std::uint8_t{0xbf}};
}

std::uint8_t byte_at(std::string_view text, std::size_t index) {
  return static_cast<std::uint8_t>(text[index]);
}

/// The length of the ASCII run at the beginning, in steps of eight bytes.
std::size_t ascii_prefix(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080u;
  std::size_t length = 0;
  while (text.size() - length >= sizeof(std::uint64_t) &&
         (load<std::uint64_t>(text.data(), length) & high_bits) == 0) {
    length += sizeof(std::uint64_t);
  }
  return length;
}

}  // namespace

Utf8Character decode_utf8(std::string_view text) {
  HEARTH_ASSERT(!text.empty());
  const std::uint8_t first = byte_at(text, 0);
  const Lead lead = classify(first);
  if (lead.length == 0) {
    return {};
  }
  if (lead.length == 1) {
    return {first, 1, Utf8Status::valid};
  }
  char32_t code_point = first & (0x7fu >> lead.length);
  for (std::uint8_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) {
      return {replacement_character, i, Utf8Status::truncated};
    }
    const std::uint8_t byte = byte_at(text, i);
    const std::uint8_t min = i == 1 ? lead.second_min : std::uint8_t{0x80};
    const std::uint8_t max = i == 1 ? lead.second_max : std::uint8_t{0xbf};
    if (byte < min || byte > max) {
      return {replacement_character, i, Utf8Status::invalid};
    }
    code_point = (code_point << 6) | (byte & 0x3fu);
  }
  return {code_point, lead.length, Utf8Status::valid};
}

void append_utf8(std::string& text, char32_t code_point) {
  HEARTH_ASSERT(code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff));
  const auto put = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto put_continuation = [&](unsigned shift) {
    put(0x80u | ((code_point >> shift) & 0x3fu));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0u | (code_point >> 6));
    put_continuation(0);
  } else if (code_point < 0x10000) {
    put(0xe0u | (code_point >> 12));
    put_continuation(6);
    put_continuation(0);
  } else {
    put(0xf0u | (code_point >> 18));
    put_continuation(12);
    put_continuation(6);
    put_continuation(0);
  }
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) {
      break;
    }
    const Utf8Character character = decode_utf8(text);
    if (character.status != Utf8Status::valid) {
      return false;
    }
    text.remove_prefix(character.n_bytes);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (character.status == Utf8Status::valid) {
      repaired.append(text.substr(0, character.n_bytes));
    } else {
      append_utf8(repaired, replacement_character);
    }
    text.remove_prefix(character.n_bytes);
  }
  return repaired;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  constexpr std::size_t longest_tail = 3;
  for (std::size_t length = 1; length <= std::min(longest_tail, text.size()); ++length) {
    const Utf8Character character = decode_utf8(text.substr(text.size() - length));
    if (character.status == Utf8Status::truncated && character.n_bytes == length) {
      return length;
    }
  }
  return 0;
}

}  // namespace hearth
