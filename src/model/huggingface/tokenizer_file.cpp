#include "model/huggingface/tokenizer_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/scored_merges.h"
#include "model/huggingface/tokenizer_pipeline.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pre_patterns.h"
#include "tokenizer/vocabulary.h"

namespace hearth::model {
namespace {

using formats::in_quotes;
using nlohmann::json;
using tokenizer::TokenType;

constexpr std::int32_t number_of(TokenType type) {
  return static_cast<std::int32_t>(type);
}

/// An id of the vocabulary and whether control token or user-defined.
struct AddedToken {
  std::int64_t id = 0;
  std::string text;
  bool is_special = false;
};

Result<AddedToken> read_added_token(const JsonObject& token) {
  AddedToken added;
  HEARTH_ASSIGN(const auto text, token.text("content"));
  HEARTH_ASSIGN(const auto is_special, token.find_flag("special"));
  added.text = text;
  added.is_special = is_special.value_or(false);
  return added;
}

Result<std::vector<AddedToken>> read_added_tokens(const JsonObject& file,
                                                  const std::optional<JsonObject>& extra) {
  std::map<std::int64_t, AddedToken> by_id;  // those of tokenizer.json come first
  HEARTH_ASSIGN(const auto* list, file.find_list("added_tokens"));
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    HEARTH_ASSIGN(const auto token,
                  JsonObject::of((*list)[i], format("{}: added_tokens[{}]", file.place(), i)));
    HEARTH_ASSIGN(auto added, read_added_token(token));
    HEARTH_ASSIGN(added.id, token.count("id", 0, max_token_id));
    by_id.emplace(added.id, std::move(added));
  }
  if (extra) {
    for (const auto& [key, value] : extra->value().items()) {
      HEARTH_ASSIGN(const auto token,
                    JsonObject::of(value, extra->place() + ": " + in_quotes(key)));
      HEARTH_ASSIGN(auto added, read_added_token(token));
      const auto parsed = std::from_chars(key.data(), key.data() + key.size(), added.id);
      if (parsed.ptr != key.data() + key.size() || added.id < 0 || added.id > max_token_id) {
        return fail(ErrorCode::invalid_file, "{}: expected token ids, found {}", extra->place(),
                    in_quotes(key));
      }
      by_id.emplace(added.id, std::move(added));
    }
  }
  std::vector<AddedToken> tokens;
  for (auto& [id, token] : by_id) {
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Failure second_text(const JsonObject& file, std::int64_t id, std::string_view one,
                    std::string_view other) {
  return fail(ErrorCode::invalid_file, "{}: token {}: expected one text, found {} and {}",
              file.place(), id, in_quotes(one), in_quotes(other));
}

/// The plain tokens of the model, at their ids.
Result<void> place_vocabulary(const JsonObject& file, const JsonObject& model, bool byte_fallback,
                              std::vector<FolderToken>& tokens) {
  HEARTH_ASSIGN(const auto vocabulary, model.object("vocab"));
  HEARTH_ASSIGN(const auto unknown, model.find_text("unk_token"));
  for (const auto& [text, id] : vocabulary.value().items()) {
    if (!id.is_number_unsigned() || id > max_token_id) {
      return fail(ErrorCode::invalid_file, "{}: vocab {}: expected an id of at most {}, found {}",
                  file.place(), in_quotes(text), max_token_id, describe(id));
    }
    if (id >= tokens.size()) {
      continue;
    }
    FolderToken& token = tokens[id.get<std::size_t>()];
    if (token.type != number_of(TokenType::undefined)) {
      return second_text(file, id.get<std::int64_t>(), token.text, text);
    }
    const bool is_byte = byte_fallback && tokenizer::parse_byte_token(text).has_value();
    token = {.text = text,
             .type = number_of(unknown == text ? TokenType::unknown
                               : is_byte       ? TokenType::byte
                                               : TokenType::normal)};
  }
  return {};
}

/// Control and user-defined tokens; their ids may lie in the vocabulary or after it.
Result<void> place_added_tokens(const JsonObject& file, const std::vector<AddedToken>& added,
                                FolderTokenizer& tokenizer) {
  std::size_t n_left_out = 0;
  for (const AddedToken& token : added) {
    if (std::cmp_greater_equal(token.id, tokenizer.tokens.size())) {
      ++n_left_out;
      continue;
    }
    FolderToken& entry = tokenizer.tokens[static_cast<std::size_t>(token.id)];
    const bool is_free = entry.type == number_of(TokenType::undefined);
    if (!is_free && entry.text != token.text) {
      return second_text(file, token.id, entry.text, token.text);
    }
    entry.text = token.text;
    if (entry.type != number_of(TokenType::unknown)) {
      entry.type = number_of(token.is_special ? TokenType::control : TokenType::user_defined);
    }
  }
  if (n_left_out > 0) {
    tokenizer.notes.push_back(
        format("{} added tokens beyond the {} rows of the embedding table are left out", n_left_out,
               tokenizer.tokens.size()));
  }
  return {};
}

void fill_gaps(std::vector<FolderToken>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].type == number_of(TokenType::undefined)) {
      tokens[i] = {.text = format("[PAD{}]", i), .type = number_of(TokenType::unused)};
    } else if (tokens[i].text.empty()) {
      tokens[i].text = format("[EMPTY_{}]", i);
    }
  }
}

/// "left right" or ["left", "right"]; a space inside a part would make the pair ambiguous.
Result<std::vector<TextPair>> read_merges(const JsonObject& file, const JsonObject& model) {
  HEARTH_ASSIGN(const auto* list, model.find_list("merges"));
  std::vector<TextPair> merges;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const json& merge = (*list)[i];
    TextPair pair;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      pair = {text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      pair = {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    const bool has_space = (pair.left + pair.right).find(' ') != std::string::npos;
    if (pair.left.empty() || pair.right.empty() || has_space) {
      return fail(ErrorCode::invalid_file,
                  "{}: merges[{}]: expected two parts without spaces, "
                  "found {}",
                  file.place(), i, describe(merge));
    }
    merges.push_back(std::move(pair));
  }
  return merges;
}

/// Options of the model that change what its merges do. Errors: unsupported.
Result<void> refuse_other_models(const JsonObject& file, const JsonObject& model) {
  HEARTH_ASSIGN(const auto type, model.text("type"));
  if (type != "BPE") {
    return fail(ErrorCode::unsupported, "{}: model type {} is not handled; known: \"BPE\"",
                file.place(), in_quotes(type));
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    HEARTH_ASSIGN(const auto text, model.find_text(affix));
    if (text && !text->empty()) {
      return fail(ErrorCode::unsupported, "{}: {}: expected none, found {}", model.place(), affix,
                  in_quotes(*text));
    }
  }
  return {};
}

}  // namespace

Result<FolderTokenizer> read_tokenizer(const JsonObject& file,
                                       const std::optional<JsonObject>& extra_tokens,
                                       std::int64_t n_rows) {
  HEARTH_ASSIGN(const auto model, file.object("model"));
  HEARTH_TRY(refuse_other_models(file, model));
  HEARTH_ASSIGN(const auto ignore_merges, model.find_flag("ignore_merges"));
  HEARTH_ASSIGN(const auto byte_fallback, model.find_flag("byte_fallback"));
  HEARTH_ASSIGN(auto pipeline, read_pipeline(file, ignore_merges.value_or(false)));
  HEARTH_ASSIGN(const Frame frame, read_frame(file));

  FolderTokenizer tokenizer{.kind = pipeline.is_byte_level ? "gpt2" : "llama",
                            .pre = std::move(pipeline.pre),
                            .normalizes_nfc = pipeline.normalizes_nfc,
                            .adds_space_prefix = pipeline.adds_space_prefix,
                            .begin_token = frame.begin,
                            .end_token = frame.end};
  tokenizer.tokens.resize(static_cast<std::size_t>(n_rows));
  HEARTH_TRY(place_vocabulary(file, model, byte_fallback.value_or(false), tokenizer.tokens));
  HEARTH_ASSIGN(const auto added, read_added_tokens(file, extra_tokens));
  HEARTH_TRY(place_added_tokens(file, added, tokenizer));
  fill_gaps(tokenizer.tokens);

  HEARTH_ASSIGN(const auto merges, read_merges(file, model));
  if (pipeline.is_byte_level) {
    for (const TextPair& merge : merges) {
      tokenizer.merges.push_back(merge.left + " " + merge.right);
    }
  } else {
    HEARTH_TRY(score_tokens(file.place(), merges, tokenizer.tokens));
  }
  return tokenizer;
}

namespace {

/// Whether files with this pre-tokenizer mean text in NFC without saying so.
bool implies_nfc(const FolderTokenizer& tokenizer) {
  const auto rule = tokenizer::find_pre_tokenizer(tokenizer.pre);
  return tokenizer.kind == "gpt2" && rule && (*rule)->normalize_nfc;
}

}  // namespace

void set_tokenizer_keys(const FolderTokenizer& tokenizer, formats::Metadata& metadata) {
  std::vector<std::string_view> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  for (const FolderToken& token : tokenizer.tokens) {
    texts.emplace_back(token.text);
    types.push_back(token.type);
    scores.push_back(token.score);
  }
  const auto count = static_cast<std::int64_t>(texts.size());
  const auto is_id = [count](std::int64_t id) { return id >= 0 && id < count; };
  metadata.set("tokenizer.ggml.model", std::string_view(tokenizer.kind));
  metadata.set("tokenizer.ggml.pre",
               std::string_view(tokenizer.pre.empty() ? "default" : tokenizer.pre));
  metadata.set_array<std::string_view>("tokenizer.ggml.tokens", texts);
  metadata.set_array<std::int32_t>("tokenizer.ggml.token_type", types);
  if (tokenizer.kind == "llama") {
    metadata.set_array<float>("tokenizer.ggml.scores", scores);
    metadata.set("tokenizer.ggml.add_space_prefix", tokenizer.adds_space_prefix);
  } else {
    metadata.set_array("tokenizer.ggml.merges", std::span<const std::string>(tokenizer.merges));
  }
  if (tokenizer.normalizes_nfc != implies_nfc(tokenizer)) {
    metadata.set("tokenizer.ggml.normalizer.nfc", tokenizer.normalizes_nfc);
  }
  metadata.set("tokenizer.ggml.add_bos_token", is_id(tokenizer.begin_token));
  metadata.set("tokenizer.ggml.add_eos_token", is_id(tokenizer.end_token));
  if (is_id(tokenizer.begin_token)) {
    metadata.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tokenizer.begin_token));
  }
}

}  // namespace hearth::model
