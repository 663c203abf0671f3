#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocabulary.h"

namespace hearth::tokenizer {

/// What a pre-tokenizer name (`tokenizer.ggml.pre`) stands for.
struct PreTokenizer {
  std::array<std::string_view, 16> names;
  /// Expressions, each applied to the pieces that the one before it left: its matches and the gaps
  /// between them are the new pieces.
  std::array<std::string_view, 6> stages;
  bool ignore_merges = false;  // a piece that is a token becomes that token, merges or not
  bool add_bos = false;        // this and the next two: unless the file says otherwise
  bool add_separator = false;
  bool normalize_nfc = false;
  Spelling spelling = Spelling::byte_alphabet;
};

/// The pre-tokenizer of this name; empty and "default" are the same.
/// Errors: unsupported for a name that is not known or known and not handled.
Result<const PreTokenizer*> find_pre_tokenizer(std::string_view name);

/// The first pre-tokenizer with exactly these expressions, applied to text as it is, and this
/// treatment of merges; nullptr when there is none.
const PreTokenizer* find_pre_tokenizer(std::span<const std::string_view> stages,
                                       bool ignore_merges);

}  // namespace hearth::tokenizer
