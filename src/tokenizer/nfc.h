#pragma once
/// Unicode Normalization Form C: a letter and its accents as one character where there is one.
/// Characters that are newer than Unicode 14 stay as they are.
/// Source: Unicode Standard Annex 15; Unicode Standard 15.0, sections 3.11 and 3.12.

#include <string>
#include <string_view>

namespace hearth::tokenizer {

/// Whether a look at each character alone says that `text` (valid UTF-8) is in NFC. True of nearly
/// all text that is.
[[nodiscard]] bool is_plainly_nfc(std::string_view text);

/// `text` (valid UTF-8) in NFC; at most three times as many bytes. Linear in the text.
[[nodiscard]] std::string to_nfc(std::string_view text);

}  // namespace hearth::tokenizer
