#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "model/huggingface/json_object.h"

namespace hearth::model {

/// A token of a folder's vocabulary, as GGUF files store one.
struct FolderToken {
  std::string text;
  float score = 0;
  std::int32_t type = 0;  // tokenizer::TokenType
};

/// What tokenizer.json says.
struct FolderTokenizer {
  std::string kind;  // tokenizer.ggml.model
  std::string pre;   // tokenizer.ggml.pre; empty where the kind has none
  std::vector<FolderToken> tokens;
  std::vector<std::string> merges;  // "left right"
  bool normalizes_nfc = false;
  bool adds_space_prefix = false;
  // What its post-processor puts around a text; negative: nothing.
  std::int64_t begin_token = -1;
  std::int64_t end_token = -1;
  std::vector<std::string> notes;
};

/// Reads tokenizer.json. `extra_tokens` is the "added_tokens_decoder" of tokenizer_config.json, for
/// tokens that stand only there. The vocabulary gets exactly `n_rows` entries, one for each row of
/// the embedding table: gaps are filled with unused tokens, added tokens beyond are left out with a
/// note.
/// Errors: invalid_file for contents that contradict themselves; unsupported for a kind of
/// tokenizer or a step of its pipeline that nothing here implements, printing it.
Result<FolderTokenizer> read_tokenizer(const JsonObject& file,
                                       const std::optional<JsonObject>& extra_tokens,
                                       std::int64_t n_rows);

/// Writes the tokenizer.* keys of the above.
void set_tokenizer_keys(const FolderTokenizer& tokenizer, formats::Metadata& metadata);

}  // namespace hearth::model
