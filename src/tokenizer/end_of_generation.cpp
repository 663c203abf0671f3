#include "tokenizer/end_of_generation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace hearth::tokenizer {
namespace {

constexpr std::array<std::optional<TokenId> SpecialTokens::*, 6> ending_roles{
    &SpecialTokens::eos,
    &SpecialTokens::eot,
    &SpecialTokens::eom,
    &SpecialTokens::fim_padding,
    &SpecialTokens::fim_repository,
    &SpecialTokens::fim_separator};

constexpr std::string_view end_of_sequence_tag = "</s>";
constexpr std::string_view harmony_end = "<|end|>";
constexpr std::string_view harmony_return = "<|return|>";
constexpr std::string_view harmony_call = "<|call|>";

constexpr std::array ending_texts{
    std::string_view("<|eot_id|>"),
    std::string_view("<|im_end|>"),
    harmony_end,
    harmony_return,
    harmony_call,
    std::string_view("<|flush|>"),
    std::string_view("<|calls|>"),
    std::string_view("<end_of_turn>"),
    std::string_view("<|endoftext|>"),
    end_of_sequence_tag,
    std::string_view("<|eom_id|>"),
    std::string_view("<EOT>"),
    std::string_view("_<EOT>"),
    std::string_view("[EOT]"),
    std::string_view("[EOS]"),
    std::string_view("<|end_of_text|>"),
    std::string_view("<end_of_utterance>"),
    std::string_view("<eos>"),
    std::string_view("<turn|>"),
    std::string_view("<|tool_response>"),
    std::string_view("<｜end▁of▁sentence｜>"),
    std::string_view("[e~["),
};

/// In Gemma's vocabulary this text is the end tag of struck-out HTML, an ordinary word.
bool is_html_tag(const TokenTable& tokens, TokenId token) {
  return tokens.text(token) == end_of_sequence_tag && tokens.type(token) == TokenType::user_defined;
}

}  // namespace

bool names_an_end(std::string_view text) {
  return std::ranges::find(ending_texts, text) != ending_texts.end();
}

std::vector<TokenId> find_end_of_generation(const TokenTable& tokens,
                                            const SpecialTokens& special) {
  std::vector<TokenId> ending;
  for (const std::string_view text : ending_texts) {
    const std::optional<TokenId> token = tokens.find(text);
    if (token && !is_html_tag(tokens, *token)) {
      ending.push_back(*token);
    }
  }
  // Where all three exist, <|end|> only ends a message and the turn goes on.
  const auto message_end = tokens.find(harmony_end);
  if (message_end && tokens.find(harmony_return) && tokens.find(harmony_call)) {
    std::erase(ending, *message_end);
  }
  for (const auto role : ending_roles) {
    if (special.*role) {
      ending.push_back(*(special.*role));
    }
  }
  std::ranges::sort(ending);
  const auto repeated = std::ranges::unique(ending);
  ending.erase(repeated.begin(), repeated.end());
  return ending;
}

}  // namespace hearth::tokenizer
