/// `hearth tokenize`: text to tokens and back, also for vocabularies without a model.

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/utf8.h"
#include "commands.h"
#include "find_model.h"
#include "model/checkpoint.h"
#include "model/tokenizer_from_gguf.h"
#include "model_options.h"
#include "printable.h"
#include "read_text.h"
#include "tokenizer/detokenizer.h"

namespace hearth::app {
namespace {

using nlohmann::ordered_json;
using tokenizer::Tokenizer;

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> text;
  bool ids = false;
  bool special = false;
  bool no_bos = false;
  bool decode = false;
  bool json = false;
};

std::int32_t number(TokenId token) {
  return static_cast<std::int32_t>(token);
}

/// Ids between spaces, commas or brackets: "[1, 2]" as well as "1 2".
Result<std::vector<TokenId>> parse_ids(std::string text, const Tokenizer& tokenizer) {
  for (char& c : text) {
    if (c == ',' || c == '[' || c == ']') {
      c = ' ';
    }
  }
  std::vector<TokenId> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int32_t id = -1;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() ||
        !tokenizer.contains(TokenId{id})) {
      return fail(ErrorCode::invalid_argument,
                  "--decode: expected token ids from 0 to {}, found '{}'", tokenizer.n_tokens() - 1,
                  printable(word, 40));
    }
    tokens.push_back(TokenId{id});
  }
  return tokens;
}

void print_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                  const TokenizeOptions& options, std::ostream& out) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (options.ids) {
      out << format("{}{}", i == 0 ? "" : " ", number(tokens[i]));
    } else {
      out << format("{:>8}  '{}'\n", number(tokens[i]),
                    printable(tokenizer.token_bytes(tokens[i])));
    }
  }
  if (options.ids) {
    out << '\n';
  }
}

ordered_json to_json(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  ordered_json ids = ordered_json::array();
  ordered_json pieces = ordered_json::array();
  for (const auto token : tokens) {
    ids.push_back(number(token));
    pieces.push_back(replace_invalid_utf8(tokenizer.token_bytes(token)));
  }
  return {{"tokens", std::move(ids)},
          {"pieces", std::move(pieces)},
          {"text", tokenizer::detokenize(tokenizer, tokens, {.show_control = true})}};
}

void print_text(const std::string& text, bool json, std::ostream& out) {
  if (json) {
    out << ordered_json{{"text", text}}.dump(2) << '\n';
  } else {
    out << text << '\n';
  }
}

Result<int> tokenize(const TokenizeOptions& options, Console& console) {
  HEARTH_ASSIGN(const auto path, find_model(options.model, model_cache()));
  HEARTH_ASSIGN(const auto file, model::Checkpoint::open(path));
  HEARTH_ASSIGN(const auto tokenizer, model::tokenizer_from_gguf(file.metadata()));
  HEARTH_ASSIGN(const auto text,
                options.text ? Result<std::string>(*options.text) : read_all(console.in));
  if (options.decode) {
    HEARTH_ASSIGN(const auto tokens, parse_ids(text, tokenizer));
    print_text(tokenizer::detokenize(tokenizer, tokens, {.show_control = options.special}),
               options.json, console.out);
    return 0;
  }
  const auto frame = options.no_bos ? Tokenizer::Frame::none : Tokenizer::Frame::add;
  const TextPart part{text, options.special};
  HEARTH_ASSIGN(const auto tokens, tokenizer.encode(std::span(&part, 1), frame));
  if (options.json) {
    console.out << to_json(tokenizer, tokens).dump(2) << '\n';
  } else {
    print_tokens(tokenizer, tokens, options, console.out);
  }
  return 0;
}

}  // namespace

Action declare_tokenize(CLI::App& app) {
  auto options = std::make_shared<TokenizeOptions>();
  add_model_argument(app, options->model);
  app.add_option("TEXT", options->text, "The text (default: standard input)");
  app.add_flag("--ids", options->ids, "Print the ids alone, on one line");
  app.add_flag("--special", options->special,
               "Control tokens may come from the text; with --decode, they are shown");
  app.add_flag("--no-bos", options->no_bos, "Leave out the begin and end tokens");
  app.add_flag("--decode", options->decode, "TEXT is token ids; print the text they stand for");
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return tokenize(*options, console); };
}

}  // namespace hearth::app
