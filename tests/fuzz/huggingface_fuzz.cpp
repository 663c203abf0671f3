/// Any JSON files beside the weights are a model's metadata and tokenizer, or an error.
///
/// An input is three files, each ended by "\n---\n": config.json, tokenizer.json, and
/// tokenizer_config.json.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "formats/json/parse.h"
#include "model/huggingface/dimensions.h"
#include "model/huggingface/quantization.h"
#include "model/huggingface/tokenizer_file.h"
#include "model/tokenizer_from_gguf.h"

namespace hearth::model {
namespace {

constexpr std::int64_t n_rows = 600;  // of the embedding table

std::string_view take_file(std::string_view& text) {
  constexpr std::string_view end = "\n---\n";
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + end.size()));
  return taken;
}

/// The value; an error must have a message.
template <class T>
std::optional<T> check(Result<T> result) {
  HEARTH_ASSERT(result || !result.error().message.empty());
  return result ? std::optional<T>(std::move(*result)) : std::nullopt;
}

void read_config(const nlohmann::json& document) {
  const auto config = check(Config::of(document, "config.json"));
  if (!config) {
    return;
  }
  check(read_quantization(*config));
  const auto family = check(find_family(*config));
  const auto dimensions = family ? check(read_dimensions(*config, **family)) : std::nullopt;
  if (dimensions) {
    HEARTH_ASSERT(!dimensions->layers.empty());
    check(metadata_of_config(*config, **family, *dimensions, 1));
    const auto rope = check(read_rope_config(*config, "full_attention"));
    if (rope) {
      check(frequency_divisors(*rope, dimensions->head_dim));
    }
  }
}

void read_tokenizer_files(const nlohmann::json& tokenizer, const nlohmann::json& config) {
  const auto file = check(JsonObject::of(tokenizer, "tokenizer.json"));
  const auto extra = check(JsonObject::of(config, "tokenizer_config.json"));
  const auto read = file ? check(read_tokenizer(*file, extra, n_rows)) : std::nullopt;
  if (!read) {
    return;
  }
  HEARTH_ASSERT(read->tokens.size() == n_rows);
  formats::Metadata metadata;
  set_tokenizer_keys(*read, metadata);
  const auto made = check(tokenizer_from_gguf(metadata));
  HEARTH_ASSERT(!made || made->n_tokens() == n_rows);
}

void read(std::string_view text) {
  const auto parse = [&text](const char* name) {
    return check(formats::parse_json(take_file(text), name)).value_or(nlohmann::json());
  };
  const auto config = parse("config.json");
  const auto tokenizer = parse("tokenizer.json");
  read_config(config);
  read_tokenizer_files(tokenizer, parse("tokenizer_config.json"));
}

}  // namespace
}  // namespace hearth::model

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hearth::model::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
