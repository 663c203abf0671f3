#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizer/byte_pair_encoder.h"
#include "tokenizer/end_of_generation.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pre_patterns.h"
#include "tokenizer/sentence_piece_encoder.h"
#include "tokenizer/unigram_encoder.h"
#include "tokenizer/vocabulary_check.h"

namespace hearth::tokenizer {
namespace {

/// What files of one kind have in common, and leave out.
struct Conventions {
  Spelling spelling = Spelling::visible_spaces;
  SpecialTokens special{};
  bool add_bos = false;
  bool add_eos = false;
  bool add_separator = false;
  bool add_space_prefix = false;
  bool normalize_nfc = false;
};

Result<Conventions> conventions_of(const Vocabulary& vocabulary) {
  switch (vocabulary.kind) {
    case VocabularyKind::sentence_piece:
      return Conventions{.special = {.bos = TokenId{1}, .eos = TokenId{2}, .unknown = TokenId{0}},
                         .add_bos = true,
                         .add_space_prefix = true};
    case VocabularyKind::unigram:
      return Conventions{
          .special = {.eos = TokenId{1}, .unknown = TokenId{2}, .padding = TokenId{0}},
          .add_eos = true,
          .add_space_prefix = true};
    case VocabularyKind::byte_pair:
      break;
  }
  HEARTH_ASSIGN(const PreTokenizer* rule, find_pre_tokenizer(vocabulary.pre));
  return Conventions{.spelling = rule->spelling,
                     .add_bos = rule->add_bos,
                     .add_separator = rule->add_separator,
                     .normalize_nfc = rule->normalize_nfc};
}

/// The roles that the file gives, then those that go without saying as far as such tokens exist.
SpecialTokens resolve_roles(const SpecialTokens& given, const SpecialTokens& usual,
                            const TokenTable& tokens) {
  SpecialTokens resolved = given;
  for (const SpecialTokenRole& role : special_token_roles) {
    const std::optional<TokenId> fallback = usual.*role.id;
    if (!(given.*role.id) && fallback && tokens.contains(*fallback)) {
      resolved.*role.id = fallback;
    }
  }
  return resolved;
}

/// Some files mark the tokens that end an answer as ordinary or user-defined ones.
void mark_as_control(std::span<const TokenId> ending, TokenTable& tokens) {
  for (const TokenId token : ending) {
    if (tokens.type(token) == TokenType::user_defined || names_an_end(tokens.text(token))) {
      tokens.set_type(token, TokenType::control);
    }
  }
}

Result<std::unique_ptr<TextEncoder>> make_encoder(const Vocabulary& vocabulary,
                                                  const TokenTable& tokens,
                                                  const SpecialTokens& special,
                                                  bool add_space_prefix) {
  switch (vocabulary.kind) {
    case VocabularyKind::byte_pair:
      return make_byte_pair_encoder(vocabulary, tokens, special.unknown);
    case VocabularyKind::sentence_piece:
      return make_sentence_piece_encoder(vocabulary, tokens, special.unknown, add_space_prefix);
    case VocabularyKind::unigram:
      break;
  }
  return make_unigram_encoder(vocabulary, tokens, special.unknown, add_space_prefix);
}

/// The parts as one valid text, and which of it is trusted.
struct JoinedText {
  struct Run {
    std::size_t end;  // byte offset in `text`
    bool trusted;
  };
  std::string text;
  std::vector<Run> runs;  // neighbours differ in trust
};

Result<void> check_length(std::string_view text) {
  if (text.size() > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::invalid_argument, "a text of {} bytes, at most {} can be encoded",
                text.size(), std::numeric_limits<std::int32_t>::max());
  }
  return {};
}

JoinedText join(std::span<const TextPart> parts) {
  JoinedText joined;
  for (const TextPart& part : parts) {
    joined.text += is_valid_utf8(part.text) ? part.text : replace_invalid_utf8(part.text);
    if (!joined.runs.empty() && joined.runs.back().trusted == part.trusted) {
      joined.runs.back().end = joined.text.size();
    } else {
      joined.runs.push_back({joined.text.size(), part.trusted});
    }
  }
  return joined;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<TokenTable> tokens, AddedTokens added)
    : tokens_(std::move(tokens)), added_(std::move(added)) {}

Result<Tokenizer> Tokenizer::create(const Vocabulary& vocabulary) {
  HEARTH_TRY(check_lists(vocabulary));
  HEARTH_ASSIGN(const Conventions usual, conventions_of(vocabulary));
  HEARTH_ASSIGN(TokenTable table, TokenTable::create(vocabulary, usual.spelling));
  auto tokens = std::make_unique<TokenTable>(std::move(table));
  const SpecialTokens special = resolve_roles(vocabulary.special, usual.special, *tokens);
  std::vector<TokenId> ending = find_end_of_generation(*tokens, special);
  mark_as_control(ending, *tokens);

  HEARTH_ASSIGN(AddedTokens added, AddedTokens::create(*tokens));
  Tokenizer tokenizer(std::move(tokens), std::move(added));
  tokenizer.special_ = special;
  tokenizer.end_of_generation_ = std::move(ending);
  for (const std::int32_t token : vocabulary.suppressed) {
    tokenizer.suppressed_.push_back(TokenId{token});
  }
  tokenizer.adds_bos_ = vocabulary.add_bos.value_or(usual.add_bos);
  tokenizer.adds_eos_ = vocabulary.add_eos.value_or(usual.add_eos);
  tokenizer.adds_separator_ = vocabulary.add_separator.value_or(usual.add_separator);
  tokenizer.adds_space_prefix_ = vocabulary.add_space_prefix.value_or(usual.add_space_prefix);
  tokenizer.normalizes_nfc_ = vocabulary.normalize_nfc.value_or(usual.normalize_nfc);
  HEARTH_ASSIGN(tokenizer.encoder_, make_encoder(vocabulary, *tokenizer.tokens_, special,
                                                 tokenizer.adds_space_prefix_));
  return tokenizer;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const TextPart> parts, Frame frame) const {
  const JoinedText joined = join(parts);
  const std::string_view text = joined.text;
  HEARTH_TRY(check_length(text));
  std::vector<TokenId> tokens;
  std::size_t plain_begin = 0;
  std::size_t at = 0;
  for (auto run = joined.runs.begin(); at < text.size();) {
    if (at >= run->end) {
      ++run;
      continue;
    }
    const auto match = added_.match(text.substr(at), run->trusted ? run->end - at : 0);
    if (!match) {
      ++at;
      continue;
    }
    HEARTH_TRY(encode_plain(text.substr(plain_begin, at - plain_begin), tokens));
    tokens.push_back(match->token);
    at += match->length;
    plain_begin = at;
  }
  HEARTH_TRY(encode_plain(text.substr(plain_begin), tokens));
  if (frame == Frame::add) {
    put_in_frame(tokens);
  }
  return tokens;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view user_text, Frame frame) const {
  const TextPart part{.text = std::string(user_text), .trusted = false};
  return encode(std::span(&part, 1), frame);
}

Result<void> Tokenizer::encode_plain(std::string_view text, std::vector<TokenId>& tokens) const {
  if (text.empty()) {
    return {};
  }
  if (!normalizes_nfc_ || is_plainly_nfc(text)) {
    return encoder_->encode(text, tokens);
  }
  const std::string normalized = to_nfc(text);
  HEARTH_TRY(check_length(normalized));
  return encoder_->encode(normalized, tokens);
}

void Tokenizer::put_in_frame(std::vector<TokenId>& tokens) const {
  const auto append_once = [&tokens](bool wanted, std::optional<TokenId> token) {
    if (wanted && token && (tokens.empty() || tokens.back() != *token)) {
      tokens.push_back(*token);
    }
  };
  if (adds_bos_ && special_.bos && (tokens.empty() || tokens.front() != *special_.bos)) {
    tokens.insert(tokens.begin(), *special_.bos);
  }
  append_once(adds_separator_, special_.separator);
  append_once(adds_eos_, special_.eos);
}

bool Tokenizer::is_control(TokenId token) const {
  return type(token) == TokenType::control || type(token) == TokenType::unknown;
}

bool Tokenizer::is_end_of_generation(TokenId token) const {
  return std::ranges::binary_search(end_of_generation_, token);
}

}  // namespace hearth::tokenizer
