#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "chat/chat_template.h"
#include "chat/conversation.h"
#include "model/model.h"

namespace hearth::app {

/// Turns a conversation into prompt tokens through the model's own chat template.
class Prompter {
 public:
  /// Parses the template of `model`, which must outlive it; `raw` leaves it aside.
  /// Errors: those of ChatTemplate::parse, with the name of the model.
  static Result<Prompter> create(const model::Model& model, bool raw);

  /// Without a template, text is completed as it stands.
  [[nodiscard]] bool has_template() const { return template_ != nullptr; }

  /// Errors: those of the template and of the tokenizer.
  [[nodiscard]] Result<std::vector<TokenId>> chat(std::vector<chat::Message> messages) const;
  [[nodiscard]] Result<std::vector<TokenId>> complete(std::string_view text) const;

 private:
  explicit Prompter(const model::Model& model) : model_(&model) {}

  const model::Model* model_;
  std::unique_ptr<const chat::ChatTemplate> template_;  // nullptr: none
};

}  // namespace hearth::app
