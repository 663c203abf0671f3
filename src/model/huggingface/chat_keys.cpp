#include "model/huggingface/chat_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/config.h"
#include "tokenizer/end_of_generation.h"

namespace hearth::model {
namespace {

using formats::in_quotes;
using formats::Metadata;
using nlohmann::json;

/// A special token of tokenizer_config.json, or of config.json by its id, and its GGUF role.
struct Role {
  const char* text;  // "bos_token": a string or an object with "content"
  const char* id;    // "bos_token_id"
  const char* key;
};
constexpr std::array roles{
    Role{"bos_token", "bos_token_id", "bos"},
    Role{"eos_token", "eos_token_id", "eos"},
    Role{"pad_token", "pad_token_id", "padding"},
    Role{"unk_token", "unk_token_id", "unknown"},
};

std::string key_of(std::string_view role) {
  return format("tokenizer.ggml.{}_token_id", role);
}

std::optional<std::uint32_t> find_token(const FolderTokenizer& tokenizer, std::string_view text) {
  const auto found = std::ranges::find(tokenizer.tokens, text, &FolderToken::text);
  return found == tokenizer.tokens.end()
             ? std::nullopt
             : std::optional(static_cast<std::uint32_t>(found - tokenizer.tokens.begin()));
}

/// The id of a role by its text; nullopt when the file does not give it, or gives a text that is no
/// token.
Result<std::optional<std::uint32_t>> id_by_text(const JsonObject& config, const char* name,
                                                const FolderTokenizer& tokenizer) {
  const json* value = config.find(name);
  if (value == nullptr) {
    return std::optional<std::uint32_t>();
  }
  if (value->is_object()) {
    HEARTH_ASSIGN(const auto object, config.object(name));
    HEARTH_ASSIGN(const auto content, object.text("content"));
    return find_token(tokenizer, content);
  }
  HEARTH_ASSIGN(const auto text, config.text(name));
  return find_token(tokenizer, text);
}

/// The ids of a role: a number or a list of numbers. Those beyond the vocabulary are left out:
/// configs name tokens that their vocabulary lacks.
Result<std::vector<std::uint32_t>> ids_of(const JsonObject& config, const char* name,
                                          std::size_t n_tokens) {
  std::vector<std::uint32_t> ids;
  const json* value = config.find(name);
  if (value == nullptr) {
    return ids;
  }
  for (const json& id : value->is_array() ? *value : json::array({*value})) {
    if (!id.is_number_integer()) {
      return fail(ErrorCode::invalid_file, "{}: {}: expected token ids, found {}", config.place(),
                  name, describe(id));
    }
    if (id >= 0 && id < n_tokens) {
      ids.push_back(id.get<std::uint32_t>());
    }
  }
  return ids;
}

/// Every end-of-sequence token of the folder, the most specific file first.
Result<std::vector<std::uint32_t>> find_ends(const FolderFiles& files,
                                             const FolderTokenizer& tokenizer) {
  std::vector<std::uint32_t> ends;
  const auto add = [&](std::uint32_t id) {
    if (std::ranges::find(ends, id) == ends.end()) {
      ends.push_back(id);
    }
  };
  if (files.tokenizer_config) {
    HEARTH_ASSIGN(const auto id,
                  id_by_text(files.tokenizer_config->object(), "eos_token", tokenizer));
    if (id) {
      add(*id);
    }
  }
  HEARTH_ASSIGN(const auto config,
                Config::of(files.config.object().value(), files.config.object().place()));
  std::vector<JsonObject> places;
  if (files.generation_config) {
    places.push_back(files.generation_config->object());
  }
  places.push_back(config.root);
  places.push_back(config.text);
  for (const JsonObject& place : places) {
    HEARTH_ASSIGN(const auto ids, ids_of(place, "eos_token_id", tokenizer.tokens.size()));
    std::ranges::for_each(ids, add);
  }
  return ends;
}

/// The first end is eos; others need a role only when their text does not tell.
Result<void> set_ends(const FolderFiles& files, const FolderTokenizer& tokenizer,
                      Metadata& metadata) {
  HEARTH_ASSIGN(const auto ends, find_ends(files, tokenizer));
  constexpr std::array<std::string_view, 3> end_roles{"eos", "eot", "eom"};
  std::size_t n_roles = 0;
  for (const std::uint32_t end : ends) {
    if (n_roles > 0 && tokenizer::names_an_end(tokenizer.tokens[end].text)) {
      continue;
    }
    if (n_roles == end_roles.size()) {
      return fail(ErrorCode::unsupported,
                  "{}: eos_token_id: expected at most {} tokens whose texts are not known as ends",
                  files.config.object().place(), end_roles.size());
    }
    metadata.set(key_of(end_roles[n_roles++]), end);
  }
  return {};
}

Result<void> set_flag(const JsonObject& config, const char* name, Metadata& metadata) {
  HEARTH_ASSIGN(const auto flag, config.find_flag(name));
  if (flag) {
    metadata.set(std::string("tokenizer.ggml.") + name, *flag);
  }
  return {};
}

/// The id of a role, from the tokenizer's config or else from the model's.
Result<std::optional<std::uint32_t>> find_role(const FolderFiles& files, const Role& role,
                                               const FolderTokenizer& tokenizer) {
  if (files.tokenizer_config) {
    HEARTH_ASSIGN(const auto id,
                  id_by_text(files.tokenizer_config->object(), role.text, tokenizer));
    if (id) {
      return id;
    }
  }
  HEARTH_ASSIGN(const auto config,
                Config::of(files.config.object().value(), files.config.object().place()));
  HEARTH_ASSIGN(const auto ids, ids_of(config.text, role.id, tokenizer.tokens.size()));
  return ids.empty() ? std::optional<std::uint32_t>() : std::optional(ids.front());
}

/// One template, or a list of them by name.
Result<std::map<std::string, std::string>> read_templates(const JsonObject& file) {
  std::map<std::string, std::string> templates;
  const json* value = file.find("chat_template");
  if (value != nullptr && value->is_array()) {
    for (const json& entry : *value) {
      HEARTH_ASSIGN(const auto named, JsonObject::of(entry, file.place() + ": chat_template"));
      HEARTH_ASSIGN(const auto name, named.text("name"));
      HEARTH_ASSIGN(const auto text, named.text("template"));
      templates.emplace(name, text);
    }
    return templates;
  }
  HEARTH_ASSIGN(const auto text, file.find_text("chat_template"));
  if (text) {
    templates.emplace("default", *text);
  }
  return templates;
}

bool is_key_part(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// A number of generation_config.json and its key below general.sampling.
struct SamplingKey {
  const char* from;
  const char* to;
};
constexpr std::array sampling_numbers{
    SamplingKey{"temperature", "temp"},
    SamplingKey{"top_p", "top_p"},
    SamplingKey{"min_p", "min_p"},
    SamplingKey{"repetition_penalty", "penalty_repeat"},
};

}  // namespace

Result<void> set_special_tokens(const FolderFiles& files, const FolderTokenizer& tokenizer,
                                Metadata& metadata) {
  for (const Role& role : roles) {
    const std::string key = key_of(role.key);
    if (metadata.entry(key) != nullptr || role.key == std::string_view("eos")) {
      continue;
    }
    HEARTH_ASSIGN(const auto id, find_role(files, role, tokenizer));
    if (id) {
      metadata.set(key, *id);
    }
  }
  HEARTH_TRY(set_ends(files, tokenizer, metadata));
  if (files.tokenizer_config) {
    HEARTH_TRY(set_flag(files.tokenizer_config->object(), "add_bos_token", metadata));
    HEARTH_TRY(set_flag(files.tokenizer_config->object(), "add_eos_token", metadata));
  }
  return {};
}

Result<void> set_chat_templates(const FolderFiles& files, Metadata& metadata) {
  std::map<std::string, std::string> templates;
  if (files.chat_template) {
    templates.emplace("default", *files.chat_template);
  }
  for (const auto* file : {&files.tokenizer_config, &files.chat_template_json}) {
    if (*file) {
      HEARTH_ASSIGN(auto more, read_templates((*file)->object()));
      templates.merge(more);  // what is there already stays
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, text] : templates) {
    if (name == "default") {
      metadata.set("tokenizer.chat_template", std::string_view(text));
    } else if (is_key_part(name)) {
      metadata.set("tokenizer.chat_template." + name, std::string_view(text));
      names.push_back(name);
    } else {
      return fail(ErrorCode::invalid_file,
                  "{}: chat_template: expected names of letters, digits and _, found {}",
                  files.config.object().place(), in_quotes(name));
    }
  }
  if (!names.empty()) {
    metadata.set_array("tokenizer.chat_templates", std::span<const std::string>(names));
  }
  return {};
}

Result<void> set_recommended_sampling(const FolderFiles& files, Metadata& metadata) {
  if (!files.generation_config) {
    return {};
  }
  const JsonObject& config = files.generation_config->object();
  HEARTH_ASSIGN(const auto samples, config.find_flag("do_sample"));
  if (!samples.value_or(false)) {
    return {};  // the other numbers are then not meant
  }
  for (const SamplingKey& key : sampling_numbers) {
    HEARTH_ASSIGN(const auto value, config.find_number(key.from));
    if (value) {
      metadata.set(std::string("general.sampling.") + key.to, static_cast<float>(*value));
    }
  }
  HEARTH_ASSIGN(const auto top_k, config.find_count("top_k", 0, 1 << 20));
  if (top_k) {
    metadata.set("general.sampling.top_k", static_cast<std::int32_t>(*top_k));
  }
  return {};
}

}  // namespace hearth::model
