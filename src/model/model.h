#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/architecture.h"
#include "model/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace hearth::model {

/// A checkpoint opened and checked: weights bound to an architecture, tokenizer, chat template.
/// Weights stay in the mapped files; those that a folder has in another layout have no data yet
/// (WeightOrigin::make). Immutable, hence thread-safe.
class Model {
 public:
  /// `draft_head`, if given, is a multi-token-prediction head that has a file of its own
  /// (is_draft_head()). Errors: those of Checkpoint::open, join_draft_head(), the tokenizer and the
  /// architecture; unsupported for an unknown architecture, with the list of known ones.
  static Result<std::unique_ptr<const Model>> open(
      const std::filesystem::path& path, std::optional<Checkpoint> draft_head = std::nullopt);

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  /// general.name, or the file's name.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view architecture() const { return architecture_name_; }
  [[nodiscard]] const HyperParams& params() const { return architecture_->params(); }
  [[nodiscard]] const graph::WeightTable& weights() const { return weights_.table; }
  /// Bytes of vectors in memory of our own, because the file has them in another type.
  [[nodiscard]] std::int64_t copied_weight_bytes() const;
  [[nodiscard]] std::vector<graph::KvLayer> kv_layers() const { return architecture_->kv_layers(); }
  [[nodiscard]] std::vector<graph::StateLayer> state_layers() const {
    return architecture_->state_layers();
  }
  [[nodiscard]] const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Tokens below this number may be in a prompt or an answer. Rows of the head behind it belong to
  /// no token: they are padding, or the vocabulary ends with entries that it calls unused.
  [[nodiscard]] std::int64_t n_usable_tokens() const { return n_usable_tokens_; }
  /// The source of the model's own chat template, if the file has one.
  [[nodiscard]] std::optional<std::string_view> chat_template() const { return chat_template_; }
  /// What was found odd but not fatal: tensors that this architecture does not use, parts of a
  /// folder that were left out.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  [[nodiscard]] Result<graph::Graph> record(graph::RowBucket bucket) const {
    return architecture_->record(weights_.table, bucket);
  }
  /// nullptr for a model without such a head.
  [[nodiscard]] const MtpHead* mtp() const { return architecture_->mtp(); }

 private:
  explicit Model(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}
  Result<void> bind();

  Checkpoint checkpoint_;
  std::string name_;
  std::string_view architecture_name_;
  BoundWeights weights_;
  std::unique_ptr<Architecture> architecture_;
  std::optional<tokenizer::Tokenizer> tokenizer_;
  std::int64_t n_usable_tokens_ = 0;
  std::optional<std::string_view> chat_template_;
  std::vector<std::string> warnings_;
};

}  // namespace hearth::model
