#include "model/synth/vocabulary.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/vocabulary.h"

namespace hearth::model {
namespace {

constexpr std::array<std::string_view, 3> control_tokens{"<|endoftext|>", "<|im_start|>",
                                                         "<|im_end|>"};
constexpr std::uint32_t bos = 0;
constexpr std::uint32_t eos = 2;

constexpr std::string_view chat_template =
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

struct SyntheticVocabulary {
  std::vector<std::string> tokens{};
  std::vector<std::string> merges{};
  std::size_t n_tokens = 0;  // to reach

  /// Adds the tokens that a part of `left` and a part of `right` make together, while there is
  /// room.
  void merge(std::span<const std::string> left, std::span<const std::string> right) {
    for (const auto& first : left) {
      for (const auto& second : right) {
        if (tokens.size() == n_tokens) {
          return;
        }
        tokens.push_back(first + second);
        merges.push_back(first + ' ' + second);
      }
    }
  }
};

/// As the vocabulary writes it.
std::string spell(std::uint8_t byte) {
  std::string text;
  append_utf8(text, tokenizer::byte_alphabet_character(byte));
  return text;
}

SyntheticVocabulary make_vocabulary(std::size_t n_tokens) {
  SyntheticVocabulary made{.n_tokens = n_tokens};
  made.tokens.assign(control_tokens.begin(), control_tokens.end());
  for (int byte = 0; byte < 256; ++byte) {
    made.tokens.push_back(spell(static_cast<std::uint8_t>(byte)));
  }
  std::vector<std::string> letters;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    letters.emplace_back(1, letter);
  }
  const std::vector<std::string> space{spell(' ')};
  const auto pairs_of = [&](const std::vector<std::string>& left) {
    const std::size_t first = made.tokens.size();
    made.merge(left, letters);
    return std::vector<std::string>(made.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                    made.tokens.end());
  };
  const auto word_starts = pairs_of(space);
  const auto pairs = pairs_of(letters);
  made.merge(word_starts, pairs);
  made.merge(pairs, pairs);
  HEARTH_ASSERT(made.tokens.size() == n_tokens);
  return made;
}

}  // namespace

void set_synthetic_vocabulary(formats::Metadata& metadata, std::int64_t n_tokens) {
  const auto made = make_vocabulary(static_cast<std::size_t>(n_tokens));
  std::vector<std::int32_t> types(made.tokens.size(),
                                  static_cast<std::int32_t>(tokenizer::TokenType::normal));
  std::fill_n(types.begin(), control_tokens.size(),
              static_cast<std::int32_t>(tokenizer::TokenType::control));
  metadata.set("tokenizer.ggml.model", std::string_view("gpt2"));
  metadata.set("tokenizer.ggml.pre", std::string_view("gpt-2"));
  metadata.set_array("tokenizer.ggml.tokens", made.tokens);
  metadata.set_array<std::int32_t>("tokenizer.ggml.token_type", types);
  metadata.set_array("tokenizer.ggml.merges", made.merges);
  metadata.set("tokenizer.ggml.bos_token_id", bos);
  metadata.set("tokenizer.ggml.eos_token_id", eos);
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.chat_template", chat_template);
}

}  // namespace hearth::model
