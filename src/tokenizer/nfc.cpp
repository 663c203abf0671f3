#include "tokenizer/nfc.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/nfc_tables.h"

namespace hearth::tokenizer {
namespace {

/// Where the first character that is not plain (U+0300), and all behind it, begin in UTF-8.
constexpr std::uint8_t first_unplain_lead = 0xcc;

// Hangul: a syllable is a leading consonant, a vowel and maybe a trailing consonant (jamo).
constexpr char32_t first_syllable = 0xac00;
constexpr char32_t first_leading = 0x1100;
constexpr char32_t first_vowel = 0x1161;
constexpr char32_t before_trailing = 0x11a7;  // which stands for none
constexpr char32_t n_leading = 19;
constexpr char32_t n_vowels = 21;
constexpr char32_t n_trailing = 28;

constexpr bool is_in(char32_t code_point, char32_t first, char32_t count) {
  return code_point >= first && code_point - first < count;
}

template <class Row, std::size_t n, class Key>
const Row* find_row(const std::array<Row, n>& rows, char32_t code_point, Key key) {
  const auto found = std::ranges::lower_bound(rows, code_point, {}, key);
  return found != rows.end() && (*found).*key == code_point ? &*found : nullptr;
}

/// Indices over the tables, made once.
class NfcIndex {
 public:
  static const NfcIndex& get() {
    static const auto index = std::make_unique<const NfcIndex>();
    return *index;
  }

  NfcIndex();

  /// Whether the character is in NFC, composes with nothing before it, and stays where it is.
  [[nodiscard]] bool is_plain(char32_t code_point) const {
    return code_point >= n_flags || !is_unplain_[code_point];
  }
  [[nodiscard]] static std::uint8_t combining_class(char32_t code_point);
  [[nodiscard]] std::optional<char32_t> compose(char32_t first, char32_t second) const;

 private:
  static constexpr std::size_t n_flags = 0x2fa1e;  // behind the last character of all tables

  std::bitset<n_flags> is_unplain_;
  std::array<Pair, nfc_pairs.size()> by_parts_;
};

bool parts_less(const Pair& a, const Pair& b) {
  return a.first != b.first ? a.first < b.first : a.second < b.second;
}

NfcIndex::NfcIndex() : by_parts_(nfc_pairs) {
  std::ranges::sort(by_parts_, parts_less);
  for (const CombiningClass& range : combining_classes) {
    for (char32_t code_point = range.first; code_point <= range.last; ++code_point) {
      is_unplain_.set(code_point);
    }
  }
  for (const Single& single : nfc_singles) {
    is_unplain_.set(single.code_point);
  }
  for (const Pair& pair : nfc_pairs_kept_apart) {
    is_unplain_.set(pair.composed);
  }
  for (const Pair& pair : nfc_pairs) {
    is_unplain_.set(pair.second);
  }
  for (char32_t vowel = 0; vowel < n_vowels; ++vowel) {
    is_unplain_.set(first_vowel + vowel);
  }
  for (char32_t trailing = 1; trailing < n_trailing; ++trailing) {
    is_unplain_.set(before_trailing + trailing);
  }
}

std::uint8_t NfcIndex::combining_class(char32_t code_point) {
  const auto behind =
      std::ranges::upper_bound(combining_classes, code_point, {}, &CombiningClass::first);
  if (behind == combining_classes.begin() || (behind - 1)->last < code_point) {
    return 0;
  }
  return (behind - 1)->number;
}

std::optional<char32_t> NfcIndex::compose(char32_t first, char32_t second) const {
  if (is_in(first, first_leading, n_leading) && is_in(second, first_vowel, n_vowels)) {
    const char32_t vowels_before = (first - first_leading) * n_vowels + (second - first_vowel);
    return first_syllable + vowels_before * n_trailing;
  }
  if (is_in(first, first_syllable, n_leading * n_vowels * n_trailing) &&
      (first - first_syllable) % n_trailing == 0 &&
      is_in(second, before_trailing + 1, n_trailing - 1)) {
    return first + (second - before_trailing);
  }
  const Pair wanted{0, first, second};
  const auto found = std::ranges::lower_bound(by_parts_, wanted, parts_less);
  if (found == by_parts_.end() || parts_less(wanted, *found)) {
    return std::nullopt;
  }
  return found->composed;
}

struct Character {
  char32_t code_point;
  std::uint8_t combining_class;
};

/// Appends the full canonical decomposition.
void decompose(char32_t code_point, std::vector<Character>& out) {
  if (is_in(code_point, first_syllable, n_leading * n_vowels * n_trailing)) {
    const char32_t index = code_point - first_syllable;
    out.push_back({first_leading + index / (n_vowels * n_trailing), 0});
    out.push_back({first_vowel + index / n_trailing % n_vowels, 0});
    if (index % n_trailing != 0) {
      out.push_back({before_trailing + index % n_trailing, 0});
    }
    return;
  }
  const std::size_t begin = out.size();  // where the first parts of pairs are found, last to first
  while (true) {
    if (const Single* single = find_row(nfc_singles, code_point, &Single::code_point)) {
      code_point = single->canonical;
      continue;
    }
    const Pair* pair = find_row(nfc_pairs, code_point, &Pair::composed);
    if (pair == nullptr) {
      pair = find_row(nfc_pairs_kept_apart, code_point, &Pair::composed);
    }
    if (pair == nullptr) {
      break;
    }
    out.push_back({pair->second, NfcIndex::combining_class(pair->second)});
    code_point = pair->first;
  }
  out.push_back({code_point, NfcIndex::combining_class(code_point)});
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
}

/// Sorts by class and keeps the order within one; linear, however many there are.
void sort_by_class(std::span<Character> marks) {
  std::array<std::size_t, 257> places{};  // of the next mark of each class
  for (const Character& mark : marks) {
    ++places[mark.combining_class + 1u];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<Character> sorted(marks.size());
  for (const Character& mark : marks) {
    sorted[places[mark.combining_class]++] = mark;
  }
  std::ranges::copy(sorted, marks.begin());
}

/// Marks of different classes do not meet on the letter, so their order means nothing: each run of
/// them is sorted by class.
void order_marks(std::vector<Character>& characters) {
  const auto is_mark = [](const Character& c) { return c.combining_class != 0; };
  for (auto run = characters.begin(); run != characters.end();) {
    run = std::find_if(run, characters.end(), is_mark);
    const auto end = std::find_if_not(run, characters.end(), is_mark);
    if (end - run > 1) {
      sort_by_class({run, end});
    }
    run = end;
  }
}

/// Joins each character with the last one of class 0 where nothing of its own class, or of class 0,
/// stands between them.
void compose(std::vector<Character>& characters) {
  const NfcIndex& index = NfcIndex::get();
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t starter = none;
  std::size_t n_kept = 0;
  for (const Character c : characters) {
    const bool is_adjacent = starter != none && n_kept == starter + 1;
    const bool is_reachable =
        starter != none &&
        (is_adjacent || characters[n_kept - 1].combining_class < c.combining_class);
    if (is_reachable) {
      if (const auto composed = index.compose(characters[starter].code_point, c.code_point)) {
        characters[starter].code_point = *composed;
        continue;
      }
    }
    if (c.combining_class == 0) {
      starter = n_kept;
    }
    characters[n_kept++] = c;
  }
  characters.resize(n_kept);
}

/// The bytes before the first character that is not plain.
std::size_t plain_bytes(std::string_view text) {
  const NfcIndex& index = NfcIndex::get();
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<std::uint8_t>(text[at]) < first_unplain_lead) {
      ++at;
      continue;
    }
    const Utf8Character character = decode_utf8(text.substr(at));
    if (!index.is_plain(character.code_point)) {
      break;
    }
    at += character.n_bytes;
  }
  return at;
}

/// The offset at which the last character of `text` begins; 0 of an empty text.
std::size_t last_character(std::string_view text) {
  std::size_t at = text.empty() ? 0 : text.size() - 1;
  while (at > 0 && (static_cast<std::uint8_t>(text[at]) & 0xc0u) == 0x80u) {
    --at;
  }
  return at;
}

/// Takes a character, and all behind it that may change it or be changed, from `text`.
void take_stretch(std::string_view& text, std::vector<Character>& stretch) {
  const NfcIndex& index = NfcIndex::get();
  stretch.clear();
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (!stretch.empty() && index.is_plain(character.code_point)) {
      return;
    }
    decompose(character.code_point, stretch);
    text.remove_prefix(character.n_bytes);
  }
}

}  // namespace

bool is_plainly_nfc(std::string_view text) {
  return plain_bytes(text) == text.size();
}

std::string to_nfc(std::string_view text) {
  std::string normalized;
  normalized.reserve(text.size());
  std::vector<Character> stretch;
  while (true) {
    const std::size_t n_plain = plain_bytes(text);
    if (n_plain == text.size()) {
      return normalized.append(text);
    }
    const std::size_t n_kept = last_character(text.substr(0, n_plain));
    normalized.append(text.substr(0, n_kept));
    text.remove_prefix(n_kept);
    take_stretch(text, stretch);
    order_marks(stretch);
    compose(stretch);
    for (const Character& character : stretch) {
      append_utf8(normalized, character.code_point);
    }
  }
}

}  // namespace hearth::tokenizer
