#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "model/huggingface/json_object.h"

namespace hearth::model {

/// A JSON file of a folder, parsed.
class JsonFile {
 public:
  /// nullopt when the file is not there. Errors: io; invalid_file when it is no JSON object or
  /// larger than `max_bytes`.
  static Result<std::optional<JsonFile>> find(const std::filesystem::path& path,
                                              std::size_t max_bytes);

  [[nodiscard]] const JsonObject& object() const { return object_; }

 private:
  JsonFile(std::unique_ptr<const nlohmann::json> document, JsonObject object);

  std::unique_ptr<const nlohmann::json> document_;  // at a fixed place, because objects borrow it
  JsonObject object_;

 public:
  JsonFile(JsonFile&& other) noexcept;
  JsonFile& operator=(JsonFile&& other) noexcept;
  ~JsonFile();
};

/// The JSON files that go with the weights. Only config.json must be there.
struct FolderFiles {
  JsonFile config;
  std::optional<JsonFile> generation_config;
  std::optional<JsonFile> tokenizer;
  std::optional<JsonFile> tokenizer_config;
  std::optional<JsonFile> chat_template_json;
  std::optional<std::string> chat_template;  // chat_template.jinja
};

/// Errors: not_found without config.json; those of JsonFile.
Result<FolderFiles> read_folder(const std::filesystem::path& folder);

}  // namespace hearth::model
