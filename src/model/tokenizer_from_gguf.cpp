#include "model/tokenizer_from_gguf.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "tokenizer/vocabulary.h"

namespace hearth::model {
namespace {

using formats::Metadata;
using tokenizer::SpecialTokens;
using tokenizer::Vocabulary;
using tokenizer::VocabularyKind;

constexpr std::string_view key_prefix = "tokenizer.ggml.";

std::string key_of(std::string_view name) {
  return std::string(key_prefix).append(name);
}

/// The values of `tokenizer.ggml.model` that can be handled.
struct Kind {
  std::string_view name;
  VocabularyKind kind;
  std::string_view pre;  // the pre-tokenizer that this kind always has; empty: the file says
};
constexpr std::array kinds{
    Kind{"gpt2", VocabularyKind::byte_pair, ""},
    Kind{"gemma4", VocabularyKind::byte_pair, "gemma4"},
    Kind{"llama", VocabularyKind::sentence_piece, ""},
    Kind{"t5", VocabularyKind::unigram, ""},
};

Result<Kind> read_kind(const Metadata& metadata) {
  HEARTH_ASSIGN(const auto name, metadata.get<std::string_view>(key_of("model")));
  std::string known;
  for (const Kind& kind : kinds) {
    if (kind.name == name) {
      return kind;
    }
    known += format("{}{}", known.empty() ? "" : ", ", kind.name);
  }
  return fail(ErrorCode::unsupported, "{}: {} is not handled; known are {}",
              formats::to_string(metadata.place_of(key_of("model"))), formats::in_quotes(name),
              known);
}

template <class T>
Result<std::vector<T>> read_list(const Metadata& metadata, std::string_view name) {
  HEARTH_ASSIGN(auto list, metadata.find_array<T>(key_of(name)));
  return std::move(list).value_or(std::vector<T>());
}

Result<SpecialTokens> read_special_tokens(const Metadata& metadata) {
  SpecialTokens special;
  for (const tokenizer::SpecialTokenRole& role : tokenizer::special_token_roles) {
    HEARTH_ASSIGN(const auto id,
                  metadata.find<std::uint32_t>(key_of(format("{}_token_id", role.name))));
    if (id) {
      special.*role.id = static_cast<TokenId>(*id);
    }
  }
  return special;
}

struct Flag {
  std::string_view name;
  std::optional<bool> Vocabulary::* value;
};
constexpr std::array flags{
    Flag{"add_bos_token", &Vocabulary::add_bos},
    Flag{"add_eos_token", &Vocabulary::add_eos},
    Flag{"add_sep_token", &Vocabulary::add_separator},
    Flag{"add_space_prefix", &Vocabulary::add_space_prefix},
    Flag{"remove_extra_whitespaces", &Vocabulary::remove_extra_whitespaces},
    Flag{"normalizer.nfc", &Vocabulary::normalize_nfc},
};

Result<void> read_flags(const Metadata& metadata, Vocabulary& vocabulary) {
  for (const Flag& flag : flags) {
    HEARTH_ASSIGN(vocabulary.*flag.value, metadata.find<bool>(key_of(flag.name)));
  }
  return {};
}

Result<Vocabulary> read_vocabulary(const Metadata& metadata) {
  HEARTH_ASSIGN(const Kind kind, read_kind(metadata));
  HEARTH_ASSIGN(const auto pre, metadata.find<std::string_view>(key_of("pre")));
  Vocabulary vocabulary;
  vocabulary.kind = kind.kind;
  vocabulary.pre = kind.pre.empty() ? pre.value_or("") : kind.pre;
  HEARTH_ASSIGN(vocabulary.tokens, metadata.get_array<std::string_view>(key_of("tokens")));
  HEARTH_ASSIGN(vocabulary.scores, read_list<float>(metadata, "scores"));
  HEARTH_ASSIGN(vocabulary.types, read_list<std::int32_t>(metadata, "token_type"));
  HEARTH_ASSIGN(vocabulary.merges, read_list<std::string_view>(metadata, "merges"));
  HEARTH_ASSIGN(vocabulary.suppressed, read_list<std::int32_t>(metadata, "suppress_tokens"));
  HEARTH_ASSIGN(const auto charsmap, metadata.find_bytes(key_of("precompiled_charsmap")));
  if (charsmap) {
    vocabulary.precompiled_charsmap = {reinterpret_cast<const char*>(charsmap->data()),
                                       charsmap->size()};
  }
  HEARTH_ASSIGN(vocabulary.special, read_special_tokens(metadata));
  HEARTH_TRY(read_flags(metadata, vocabulary));
  return vocabulary;
}

}  // namespace

Result<tokenizer::Tokenizer> tokenizer_from_gguf(const Metadata& metadata) {
  HEARTH_ASSIGN(const Vocabulary vocabulary, read_vocabulary(metadata));
  auto result = tokenizer::Tokenizer::create(vocabulary);
  if (!result) {
    return fail(result.error().code, "{}: tokenizer: {}", metadata.place_of(key_of("tokens")).file,
                result.error().message);
  }
  return result;
}

}  // namespace hearth::model
