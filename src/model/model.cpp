#include "model/model.h"

#include <numeric>
#include <utility>

#include "base/fail.h"
#include "model/draft_head.h"
#include "model/tokenizer_from_gguf.h"

namespace hearth::model {
namespace {

/// One more than the last token that is not unused.
std::int64_t count_usable_tokens(const tokenizer::Tokenizer& tokenizer) {
  auto n = static_cast<std::int64_t>(tokenizer.n_tokens());
  while (n > 0 && tokenizer.type(static_cast<TokenId>(n - 1)) == tokenizer::TokenType::unused) {
    --n;
  }
  return n;
}

}  // namespace

Result<std::unique_ptr<const Model>> Model::open(const std::filesystem::path& path,
                                                 std::optional<Checkpoint> draft_head) {
  HEARTH_ASSIGN(auto checkpoint, Checkpoint::open(path, ExpertLayout::stored));
  if (draft_head) {
    HEARTH_ASSIGN(checkpoint, join_draft_head(std::move(checkpoint), std::move(*draft_head)));
  }
  std::unique_ptr<Model> model(new Model(std::move(checkpoint)));
  HEARTH_TRY(model->bind());
  return model;
}

std::int64_t Model::copied_weight_bytes() const {
  return std::accumulate(
      weights_.owned.begin(), weights_.owned.end(), std::int64_t{0},
      [](std::int64_t sum, const Buffer& buffer) { return sum + buffer.size(); });
}

Result<void> Model::bind() {
  const auto& metadata = checkpoint_.metadata();
  HEARTH_ASSIGN(const auto* entry, find_architecture(metadata));
  architecture_name_ = entry->name;
  HEARTH_ASSIGN(const auto given_name, metadata.find<std::string_view>("general.name"));
  name_ = given_name ? std::string(*given_name)
                     : std::filesystem::path(checkpoint_.name()).filename().string();
  HEARTH_ASSIGN(chat_template_, metadata.find<std::string_view>("tokenizer.chat_template"));

  WeightBinder binder(checkpoint_);
  warnings_.assign(checkpoint_.notes().begin(), checkpoint_.notes().end());
  HEARTH_ASSIGN(architecture_, entry->bind(binder));
  for (const auto& tensor : binder.unused()) {
    warnings_.push_back(
        format("tensor '{}' is not used by architecture '{}'", tensor, architecture_name_));
  }
  weights_ = std::move(binder).finish();

  HEARTH_ASSIGN(tokenizer_, tokenizer_from_gguf(metadata));
  const auto n_tokens = static_cast<std::int64_t>(tokenizer_->n_tokens());
  if (n_tokens > params().vocab) {
    return fail(ErrorCode::invalid_file,
                "{}: the tokenizer has {} tokens, but token_embd.weight only {} rows",
                checkpoint_.name(), n_tokens, params().vocab);
  }
  n_usable_tokens_ = count_usable_tokens(*tokenizer_);
  return {};
}

}  // namespace hearth::model
