#include "model/huggingface/open.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "model/huggingface/chat_keys.h"
#include "model/huggingface/config.h"
#include "model/huggingface/dimensions.h"
#include "model/huggingface/folder.h"
#include "model/huggingface/tensors.h"
#include "model/huggingface/tokenizer_file.h"
#include "model/huggingface/tokenizer_pipeline.h"

namespace hearth::model {
namespace {

std::string name_of(const std::filesystem::path& folder) {
  const auto last = folder.filename();
  return (last.empty() || last == "."
              ? std::filesystem::absolute(folder).lexically_normal().parent_path().filename()
              : last)
      .string();
}

/// Rows of the embedding table, which the vocabulary must have.
Result<std::int64_t> rows_of_table(const FolderTensors& folder, const std::string& place) {
  const auto& table = folder.tensors;
  const auto found = std::ranges::find(table, "token_embd.weight", &CheckpointTensor::name);
  if (found == table.end() || found->shape.rank() != 2 || found->shape[0] > max_token_id) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor \"embed_tokens.weight\": expected a matrix of at most {} rows", place,
                max_token_id);
  }
  return found->shape[0];
}

Result<void> add_tokenizer(const FolderFiles& files, std::int64_t n_rows,
                           Checkpoint::Parts& parts) {
  if (!files.tokenizer) {
    return fail(ErrorCode::not_found, "{}: expected tokenizer.json, found none", parts.name);
  }
  std::optional<JsonObject> extra_tokens;
  if (files.tokenizer_config) {
    HEARTH_ASSIGN(extra_tokens,
                  files.tokenizer_config->object().find_object("added_tokens_decoder"));
  }
  HEARTH_ASSIGN(const auto tokenizer,
                read_tokenizer(files.tokenizer->object(), extra_tokens, n_rows));
  set_tokenizer_keys(tokenizer, parts.metadata);
  parts.notes.insert(parts.notes.end(), tokenizer.notes.begin(), tokenizer.notes.end());
  return set_special_tokens(files, tokenizer, parts.metadata);
}

/// Whether the folder is what mlx-vlm splits off a model: its multi-token-prediction head.
Result<bool> is_split_off_head(const Config& config) {
  HEARTH_ASSIGN(const auto type, config.root.find_text("model_type"));
  return type == std::optional<std::string_view>("qwen3_5_mtp");
}

std::string format_of(bool is_drafter, bool is_mlx) {
  return is_drafter ? "MLX safetensors, an MTP head"
         : is_mlx   ? "MLX safetensors"
                    : "Hugging Face safetensors";
}

}  // namespace

Result<Checkpoint> open_huggingface_folder(const std::filesystem::path& folder,
                                           ExpertLayout experts) {
  HEARTH_ASSIGN(const auto files, read_folder(folder));
  const JsonObject& config_file = files.config.object();
  HEARTH_ASSIGN(const auto stored, Config::of(config_file.value(), config_file.place()));
  HEARTH_ASSIGN(const auto* family, find_family(stored));
  const auto text = with_defaults(stored.text.value(), family->defaults);
  HEARTH_ASSIGN(const auto text_object, JsonObject::of(text, stored.text.place()));
  const Config config{stored.root, text_object};
  HEARTH_ASSIGN(const auto dimensions, read_dimensions(config, *family));

  HEARTH_ASSIGN(auto opened, formats::SafetensorsModel::open(folder));
  const auto weights = std::make_shared<const formats::SafetensorsModel>(std::move(opened));
  HEARTH_ASSIGN(const bool is_drafter, is_split_off_head(config));
  HEARTH_ASSIGN(auto tensors, is_drafter
                                  ? read_draft_tensors(*weights, config, *family, dimensions)
                                  : read_tensors(*weights, config, *family, dimensions, experts));

  Checkpoint::Parts parts{.name = folder.string(), .format = format_of(is_drafter, tensors.is_mlx)};
  HEARTH_ASSIGN(parts.metadata,
                metadata_of_config(config, *family, dimensions, tensors.n_draft_layers));
  parts.metadata.set("general.name", std::string_view(name_of(folder)));
  parts.notes = std::move(tensors.notes);
  if (!is_drafter) {  // the trunk's folder has the text side
    HEARTH_ASSIGN(const auto n_rows, rows_of_table(tensors, weights->shard_name(0)));
    HEARTH_TRY(set_recommended_sampling(files, parts.metadata));
    HEARTH_TRY(add_tokenizer(files, n_rows, parts));
    HEARTH_TRY(set_chat_templates(files, parts.metadata));
  }
  parts.tensors = std::move(tensors.tensors);
  parts.shard_names = {weights->shard_names().begin(), weights->shard_names().end()};
  parts.storage = weights;
  return Checkpoint(std::move(parts));
}

}  // namespace hearth::model
