#include "model/huggingface/folder.h"

#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "formats/json/parse.h"

namespace hearth::model {
namespace {

namespace fs = std::filesystem;

// Several times what published folders have.
constexpr std::size_t max_config_bytes = std::size_t{4} << 20;
constexpr std::size_t max_template_bytes = std::size_t{4} << 20;
constexpr std::size_t max_tokenizer_bytes = std::size_t{96} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;  // whoever opens it will say it better
  return fs::exists(path, ignored);
}

Result<std::optional<std::string>> read_template(const fs::path& path) {
  if (!is_there(path)) {
    return std::optional<std::string>();
  }
  HEARTH_ASSIGN(const auto mapping, MappedFile::open(path));
  const Bytes bytes = mapping.bytes();
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() > max_template_bytes || !is_valid_utf8(text)) {
    return fail(ErrorCode::invalid_file, "{}: expected at most {} bytes of UTF-8", path.string(),
                max_template_bytes);
  }
  return std::optional(std::move(text));
}

}  // namespace

JsonFile::JsonFile(std::unique_ptr<const nlohmann::json> document, JsonObject object)
    : document_(std::move(document)), object_(std::move(object)) {}
JsonFile::JsonFile(JsonFile&& other) noexcept = default;
JsonFile& JsonFile::operator=(JsonFile&& other) noexcept = default;
JsonFile::~JsonFile() = default;

Result<std::optional<JsonFile>> JsonFile::find(const fs::path& path, std::size_t max_bytes) {
  if (!is_there(path)) {
    return std::optional<JsonFile>();
  }
  HEARTH_ASSIGN(auto parsed, formats::read_json(path, max_bytes));
  auto document = std::make_unique<const nlohmann::json>(std::move(parsed));
  HEARTH_ASSIGN(auto object, JsonObject::of(*document, path.string()));
  return std::optional(JsonFile(std::move(document), std::move(object)));
}

Result<FolderFiles> read_folder(const fs::path& folder) {
  HEARTH_ASSIGN(auto config, JsonFile::find(folder / "config.json", max_config_bytes));
  if (!config) {
    return fail(ErrorCode::not_found,
                "{}: expected a GGUF file or a Hugging Face folder, found a folder without "
                "config.json",
                folder.string());
  }
  FolderFiles files{.config = std::move(*config)};
  HEARTH_ASSIGN(files.generation_config,
                JsonFile::find(folder / "generation_config.json", max_config_bytes));
  HEARTH_ASSIGN(files.tokenizer, JsonFile::find(folder / "tokenizer.json", max_tokenizer_bytes));
  HEARTH_ASSIGN(files.tokenizer_config,
                JsonFile::find(folder / "tokenizer_config.json", max_config_bytes));
  HEARTH_ASSIGN(files.chat_template_json,
                JsonFile::find(folder / "chat_template.json", max_template_bytes));
  HEARTH_ASSIGN(files.chat_template, read_template(folder / "chat_template.jinja"));
  return files;
}

}  // namespace hearth::model
