#pragma once
/// What a model file says about its tokenizer, as plain values: the input of Tokenizer::create.
/// Nothing here has been checked yet.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"

namespace hearth::tokenizer {

enum class VocabularyKind {
  byte_pair,       // ranked merges (gpt2, gemma4)
  sentence_piece,  // merges by score (llama)
  unigram,         // the most probable segmentation (t5)
};

/// How a vocabulary writes the text that its tokens stand for.
enum class Spelling {
  byte_alphabet,   // any bytes, each as a printable character
  characters,      // UTF-8 as it is
  visible_spaces,  // UTF-8 with spaces written as U+2581
};

/// Values as stored in GGUF files (tokenizer.ggml.token_type).
enum class TokenType : std::int32_t {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// Whether merging or segmenting plain text may produce a token of this type.
/// Others come from the added-token search, from the byte fallback, or not at all.
[[nodiscard]] constexpr bool is_plain(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined ||
         type == TokenType::undefined;
}

/// Tokens with a role. Every id is optional.
struct SpecialTokens {
  std::optional<TokenId> bos{};
  std::optional<TokenId> eos{};
  std::optional<TokenId> eot{};  // end of turn
  std::optional<TokenId> eom{};  // end of message
  std::optional<TokenId> unknown{};
  std::optional<TokenId> separator{};
  std::optional<TokenId> padding{};
  std::optional<TokenId> mask{};
  std::optional<TokenId> cls{};
  std::optional<TokenId> fim_prefix{};
  std::optional<TokenId> fim_suffix{};
  std::optional<TokenId> fim_middle{};
  std::optional<TokenId> fim_padding{};
  std::optional<TokenId> fim_repository{};
  std::optional<TokenId> fim_separator{};
};

/// The roles by the names that GGUF keys use: `tokenizer.ggml.<name>_token_id`.
struct SpecialTokenRole {
  std::string_view name;
  std::optional<TokenId> SpecialTokens::* id;
};
inline constexpr std::array special_token_roles{
    SpecialTokenRole{"bos", &SpecialTokens::bos},
    SpecialTokenRole{"eos", &SpecialTokens::eos},
    SpecialTokenRole{"eot", &SpecialTokens::eot},
    SpecialTokenRole{"eom", &SpecialTokens::eom},
    SpecialTokenRole{"unknown", &SpecialTokens::unknown},
    SpecialTokenRole{"seperator", &SpecialTokens::separator},  // spelled so in the format
    SpecialTokenRole{"padding", &SpecialTokens::padding},
    SpecialTokenRole{"mask", &SpecialTokens::mask},
    SpecialTokenRole{"cls", &SpecialTokens::cls},
    SpecialTokenRole{"fim_pre", &SpecialTokens::fim_prefix},
    SpecialTokenRole{"fim_suf", &SpecialTokens::fim_suffix},
    SpecialTokenRole{"fim_mid", &SpecialTokens::fim_middle},
    SpecialTokenRole{"fim_pad", &SpecialTokens::fim_padding},
    SpecialTokenRole{"fim_rep", &SpecialTokens::fim_repository},
    SpecialTokenRole{"fim_sep", &SpecialTokens::fim_separator},
};

/// Texts are borrowed: they must stay alive until Tokenizer::create returns.
struct Vocabulary {
  VocabularyKind kind = VocabularyKind::byte_pair;
  std::string_view pre;  // name of the pre-tokenizer; empty means "default"
  std::vector<std::string_view> tokens;
  std::vector<float> scores;             // empty, or one per token
  std::vector<std::int32_t> types;       // empty, or one TokenType value per token
  std::vector<std::string_view> merges;  // "left right", in rank order
  SpecialTokens special;

  // Absent means: what files of this kind expect (the spec's defaults).
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_separator;
  std::optional<bool> add_space_prefix;
  std::optional<bool> remove_extra_whitespaces;
  std::optional<bool> normalize_nfc;

  std::string_view precompiled_charsmap;  // the bytes of the unigram normalizer, may be empty
  std::vector<std::int32_t> suppressed;   // tokens that sampling masks
};

}  // namespace hearth::tokenizer
