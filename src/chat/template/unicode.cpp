#include "chat/template/unicode.h"

#include <array>
#include <optional>

namespace hearth::chat {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t offset) {
  return static_cast<std::uint8_t>(text[offset]);
}

bool is_continuation(std::uint8_t byte) {
  return (byte & 0xC0u) == 0x80u;
}

struct Sequence {
  std::size_t n_bytes;
  std::uint32_t lead_bits;
  std::uint32_t smallest;  // a smaller value would be an overlong encoding
};

std::optional<Sequence> sequence_of(std::uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) {
    return Sequence{2, lead & 0x1Fu, 0x80};
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return Sequence{3, lead & 0x0Fu, 0x800};
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    return Sequence{4, lead & 0x07u, 0x10000};
  }
  return std::nullopt;
}

/// A run of letters whose two cases lie `delta` apart, in steps of `stride` code points.
struct CaseRange {
  char32_t first_upper;
  char32_t last_upper;
  std::int32_t delta;  // lower = upper + delta
  std::uint32_t stride;
};

// From UnicodeData.txt (Unicode 15): simple mappings beyond ASCII whose cases map to each other.
constexpr std::array case_ranges{
    CaseRange{0x00C0, 0x00D6, 32, 1},    // Latin-1
    CaseRange{0x00D8, 0x00DE, 32, 1},    //
    CaseRange{0x0100, 0x012E, 1, 2},     // Latin Extended-A
    CaseRange{0x0132, 0x0136, 1, 2},     //
    CaseRange{0x0139, 0x0147, 1, 2},     //
    CaseRange{0x014A, 0x0176, 1, 2},     //
    CaseRange{0x0178, 0x0178, -121, 1},  // y with diaeresis
    CaseRange{0x0179, 0x017D, 1, 2},     //
    CaseRange{0x01CD, 0x01DB, 1, 2},     // Latin Extended-B: pinyin and Nordic letters
    CaseRange{0x01DE, 0x01EE, 1, 2},     //
    CaseRange{0x01F8, 0x021E, 1, 2},     //
    CaseRange{0x0222, 0x0232, 1, 2},     //
    CaseRange{0x0386, 0x0386, 38, 1},    // Greek
    CaseRange{0x0388, 0x038A, 37, 1},    //
    CaseRange{0x038C, 0x038C, 64, 1},    //
    CaseRange{0x038E, 0x038F, 63, 1},    //
    CaseRange{0x0391, 0x03A1, 32, 1},    //
    CaseRange{0x03A3, 0x03AB, 32, 1},    //
    CaseRange{0x0400, 0x040F, 80, 1},    // Cyrillic
    CaseRange{0x0410, 0x042F, 32, 1},    //
    CaseRange{0x0460, 0x0480, 1, 2},     //
    CaseRange{0x048A, 0x04BE, 1, 2},     //
    CaseRange{0x04C1, 0x04CD, 1, 2},     //
    CaseRange{0x04D0, 0x052E, 1, 2},     //
    CaseRange{0x0531, 0x0556, 48, 1},    // Armenian
    CaseRange{0x1E00, 0x1E94, 1, 2},     // Latin Extended Additional
    CaseRange{0x1EA0, 0x1EFE, 1, 2},     // Vietnamese
    CaseRange{0xFF21, 0xFF3A, 32, 1},    // full-width Latin
};

char32_t shifted(char32_t c, std::int32_t delta) {
  return static_cast<char32_t>(static_cast<std::int32_t>(c) + delta);
}

bool is_in(const CaseRange& range, char32_t upper) {
  return upper >= range.first_upper && upper <= range.last_upper &&
         (upper - range.first_upper) % range.stride == 0;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const std::uint8_t lead = byte_at(text, offset);
  if (lead < 0x80) {
    return {lead, 1};
  }
  const CodePoint stray{static_cast<char32_t>(0xDC00 + lead), 1};
  const auto sequence = sequence_of(lead);
  if (!sequence || text.size() - offset < sequence->n_bytes) {
    return stray;
  }
  std::uint32_t value = sequence->lead_bits;
  for (std::size_t i = 1; i < sequence->n_bytes; ++i) {
    const std::uint8_t byte = byte_at(text, offset + i);
    if (!is_continuation(byte)) {
      return stray;
    }
    value = value << 6 | (byte & 0x3Fu);
  }
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < sequence->smallest || value > 0x10FFFF || is_surrogate) {
    return stray;
  }
  return {static_cast<char32_t>(value), sequence->n_bytes};
}

std::size_t previous_code_point(std::string_view text, std::size_t end) {
  for (std::size_t n_bytes = 2; n_bytes <= 4 && n_bytes <= end; ++n_bytes) {
    if (!is_continuation(byte_at(text, end - n_bytes + 1))) {
      break;
    }
    if (code_point_at(text, end - n_bytes).n_bytes == n_bytes) {
      return end - n_bytes;
    }
  }
  return end - 1;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).n_bytes) {
    ++n;
  }
  return n;
}

std::size_t byte_offset(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    at += code_point_at(text, at).n_bytes;
  }
  return at;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto c = static_cast<std::uint32_t>(code_point);
  const auto push = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0u | c >> 6);
    push(0x80u | (c & 0x3Fu));
  } else if (c < 0x10000) {
    push(0xE0u | c >> 12);
    push(0x80u | (c >> 6 & 0x3Fu));
    push(0x80u | (c & 0x3Fu));
  } else {
    push(0xF0u | c >> 18);
    push(0x80u | (c >> 12 & 0x3Fu));
    push(0x80u | (c >> 6 & 0x3Fu));
    push(0x80u | (c & 0x3Fu));
  }
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) {
    return c >= U'a' && c <= U'z' ? c - 32 : c;
  }
  for (const CaseRange& range : case_ranges) {
    if (is_in(range, shifted(c, -range.delta))) {
      return shifted(c, -range.delta);
    }
  }
  return c == 0x03C2 ? char32_t{0x03A3} : c;  // final sigma has no capital of its own
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) {
    return c >= U'A' && c <= U'Z' ? c + 32 : c;
  }
  for (const CaseRange& range : case_ranges) {
    if (is_in(range, c)) {
      return shifted(c, range.delta);
    }
  }
  return c;
}

bool is_cased(char32_t c) {
  return to_upper(c) != c || to_lower(c) != c || c == 0x00DF || c == 0x0138 || c == 0x0149;
}

}  // namespace hearth::chat
