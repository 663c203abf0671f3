#include "prompt.h"

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "tokenizer/tokenizer.h"

namespace hearth::app {
namespace {

using tokenizer::SpecialTokens;
using tokenizer::Tokenizer;

/// The tokens that templates print by name.
struct TemplateToken {
  const char* name;
  std::optional<TokenId> SpecialTokens::* id;
};
constexpr TemplateToken template_tokens[]{
    {"bos_token", &SpecialTokens::bos},       {"eos_token", &SpecialTokens::eos},
    {"unk_token", &SpecialTokens::unknown},   {"pad_token", &SpecialTokens::padding},
    {"sep_token", &SpecialTokens::separator},
};

std::vector<std::pair<std::string, std::string>> special_texts(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& token : template_tokens) {
    if (const auto id = tokenizer.special().*token.id) {
      texts.emplace_back(token.name, tokenizer.token_text(*id));
    }
  }
  return texts;
}

/// What the clock on the wall shows.
std::chrono::local_seconds local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm wall{};
  localtime_r(&now, &wall);
  return std::chrono::local_seconds(std::chrono::seconds(timegm(&wall)));
}

Error in_template(const model::Model& model, const Error& error) {
  return {error.code, format("{}: chat template: {}", model.name(), error.message)};
}

}  // namespace

Result<Prompter> Prompter::create(const model::Model& model, bool raw) {
  Prompter prompter(model);
  if (const auto source = model.chat_template(); source && !raw) {
    auto parsed = chat::ChatTemplate::parse(*source);
    if (!parsed) {
      auto error = in_template(model, parsed.error());
      error.message += " (--raw goes on without the template)";
      return Failure(std::move(error));
    }
    prompter.template_ = std::make_unique<const chat::ChatTemplate>(std::move(*parsed));
  }
  return prompter;
}

Result<std::vector<TokenId>> Prompter::chat(std::vector<chat::Message> messages) const {
  HEARTH_ASSERT(has_template());
  const auto rendered = template_->render({.messages = std::move(messages),
                                           .special_tokens = special_texts(model_->tokenizer()),
                                           .now = local_now()});
  if (!rendered) {
    return Failure(in_template(*model_, rendered.error()));
  }
  return model_->tokenizer().encode(rendered->parts);
}

Result<std::vector<TokenId>> Prompter::complete(std::string_view text) const {
  return model_->tokenizer().encode(text, Tokenizer::Frame::add);
}

}  // namespace hearth::app
