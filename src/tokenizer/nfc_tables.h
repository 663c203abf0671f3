#pragma once
/// What Unicode says about canonical equivalence, Hangul syllables left out: they are composed by
/// arithmetic. Sorted by the first member. Written by tools/make_nfc_tables.py.
/// Source: Unicode Character Database 14.0, UnicodeData.txt and CompositionExclusions.txt.

#include <array>
#include <cstdint>

namespace hearth::tokenizer {

/// Characters first..last have this Canonical_Combining_Class; all others have class 0.
struct CombiningClass {
  char32_t first;
  char32_t last;
  std::uint8_t number;
};
extern const std::array<CombiningClass, 382> combining_classes;

/// A character that another one stands for; nothing composes to it.
struct Single {
  char32_t code_point;
  char32_t canonical;
};
extern const std::array<Single, 1035> nfc_singles;

/// A character that two stand for. The second does not decompose any further.
struct Pair {
  char32_t composed;
  char32_t first;
  char32_t second;
};
extern const std::array<Pair, 941> nfc_pairs;
/// Of these the two are the form that NFC has.
extern const std::array<Pair, 85> nfc_pairs_kept_apart;

}  // namespace hearth::tokenizer
