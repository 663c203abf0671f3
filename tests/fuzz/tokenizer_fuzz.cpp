/// Any vocabulary is a tokenizer or an error, and a tokenizer keeps its promises on any text.
///
/// An input is text in sections, each ended by "\n---\n":
///   kind (a digit) and pre-tokenizer name | tokens | merges | charsmap | text
/// A token line is its type (a digit), its score (any character) and its text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/utf8.h"
#include "tokenizer/detokenizer.h"

namespace hearth::tokenizer {
namespace {

std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + end.size()));
  return taken;
}

Vocabulary parse(std::string_view& input) {
  constexpr std::string_view section_end = "\n---\n";
  Vocabulary vocabulary;
  std::string_view head = take_until(input, section_end);
  if (!head.empty()) {
    vocabulary.kind = static_cast<VocabularyKind>(static_cast<unsigned char>(head.front()) % 3);
    vocabulary.pre = head.substr(1);
  }
  for (std::string_view tokens = take_until(input, section_end); !tokens.empty();) {
    const std::string_view line = take_until(tokens, "\n");
    vocabulary.types.push_back(line.empty() ? 1 : line[0] - '0');
    vocabulary.scores.push_back(line.size() < 2 ? 0.0f : static_cast<float>(line[1]));
    vocabulary.tokens.push_back(line.substr(std::min<std::size_t>(2, line.size())));
  }
  for (std::string_view merges = take_until(input, section_end); !merges.empty();) {
    vocabulary.merges.push_back(take_until(merges, "\n"));
  }
  vocabulary.precompiled_charsmap = take_until(input, section_end);
  return vocabulary;
}

void check_encoding(const Tokenizer& tokenizer, std::string_view text, bool trusted) {
  const TextPart part{.text = std::string(text), .trusted = trusted};
  const auto tokens = tokenizer.encode({&part, 1}, Tokenizer::Frame::none);
  if (!tokens) {
    HEARTH_ASSERT(!tokens.error().message.empty());
    return;
  }
  for (const TokenId token : *tokens) {
    HEARTH_ASSERT(tokenizer.contains(token));
    const TokenType type = tokenizer.type(token);
    HEARTH_ASSERT(trusted || type != TokenType::control);
  }
  const std::string shown = detokenize(tokenizer, *tokens, {.show_control = true});
  HEARTH_ASSERT(is_valid_utf8(shown));
}

void run(std::string_view input) {
  const Vocabulary vocabulary = parse(input);
  const auto tokenizer = Tokenizer::create(vocabulary);
  if (!tokenizer) {
    HEARTH_ASSERT(is_valid_utf8(tokenizer.error().message));
    return;
  }
  check_encoding(*tokenizer, input, false);
  check_encoding(*tokenizer, input, true);
}

}  // namespace
}  // namespace hearth::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hearth::tokenizer::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
