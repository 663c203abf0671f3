#include "tokenizer/piece_encoder.h"

#include <utility>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace hearth::tokenizer {

PieceEncoder::PieceEncoder(const TokenTable& tokens, Rules rules, const Options& options)
    : options_(options),
      rules_(std::move(rules)),
      texts_(tokens.size()),
      fallback_(tokens, options.unknown),
      wholeness_(tokens.size()) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId token = tokens.id(i);
    if (is_over_bytes()) {
      add_bytes(tokens, token);
    } else if (is_plain(tokens.type(token)) && !tokens.text(token).empty()) {
      texts_.insert(tokens.text(token), token);
    }
  }
}

// User-defined tokens and those with other characters than the alphabet's are written as they are:
// they are no spelling of bytes that merges could reach.
void PieceEncoder::add_bytes(const TokenTable& tokens, TokenId token) {
  const TokenType type = tokens.type(token);
  const std::string_view bytes = tokens.bytes(token);
  if ((type != TokenType::normal && type != TokenType::undefined) || bytes.empty() ||
      !decode_byte_alphabet(tokens.text(token))) {
    return;
  }
  texts_.insert(bytes, token);
  if (bytes.size() == 1) {
    fallback_.set(static_cast<std::uint8_t>(bytes.front()), token);
  }
}

Result<void> PieceEncoder::encode(std::string_view piece, MergeChain& chain,
                                  std::vector<TokenId>& tokens) const {
  if (const std::optional<TokenId> token = texts_.find(piece)) {
    if (options_.ignore_merges || is_whole(piece, *token, chain)) {
      tokens.push_back(*token);
      return {};
    }
  }
  merge(piece, chain);
  Result<void> result;
  chain.for_each([&](const Symbol& symbol) {
    if (symbol.token != no_token) {
      tokens.push_back(symbol.token);
    } else if (result) {
      result = fallback_.encode(piece.substr(symbol.begin, symbol.length), tokens);
    }
  });
  return result;
}

void PieceEncoder::merge(std::string_view piece, MergeChain& chain) const {
  append_symbols(piece, chain);
  if (const auto* ranked = std::get_if<RankedMerges>(&rules_)) {
    chain.merge([ranked](const Symbol& left, const Symbol& right) {
      return ranked->propose(left.token, right.token);
    });
  } else {
    const auto& scored = std::get<ScoredMerges>(rules_);
    chain.merge([&](const Symbol& left, const Symbol& right) {
      return scored.propose(texts_, piece.substr(left.begin, left.length + right.length));
    });
  }
}

void PieceEncoder::append_symbols(std::string_view piece, MergeChain& chain) const {
  chain.clear();
  if (is_over_bytes()) {
    for (const char byte : piece) {
      chain.append(1, fallback_.find(byte).value_or(no_token));
    }
    return;
  }
  while (!piece.empty()) {
    const std::uint8_t n_bytes = decode_utf8(piece).n_bytes;
    chain.append(n_bytes, texts_.find(piece.substr(0, n_bytes)).value_or(no_token));
    piece.remove_prefix(n_bytes);
  }
}

bool PieceEncoder::is_whole(std::string_view piece, TokenId token, MergeChain& chain) const {
  std::atomic<Wholeness>& known = wholeness_[static_cast<std::size_t>(token)];
  Wholeness wholeness = known.load(std::memory_order_relaxed);
  if (wholeness == Wholeness::not_known) {
    merge(piece, chain);
    wholeness = Wholeness::whole;
    chain.for_each([&](const Symbol& symbol) {
      if (symbol.token != token) {
        wholeness = Wholeness::parts;
      }
    });
    known.store(wholeness, std::memory_order_relaxed);
  }
  return wholeness == Wholeness::whole;
}

}  // namespace hearth::tokenizer
