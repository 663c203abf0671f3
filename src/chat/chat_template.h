#pragma once
/// A model's own chat template: messages in, prompt out, with the origin of every character.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text_part.h"
#include "chat/conversation.h"
#include "chat/template/limits.h"

namespace hearth::chat {

/// The prompt. Text that the template's author wrote, and the model's own special tokens, are
/// trusted; all that came from the conversation is not, whatever the template did with it.
/// Neighbouring parts differ in origin.
struct Rendered {
  std::vector<TextPart> parts;

  /// The whole prompt without origins.
  [[nodiscard]] std::string text() const;
};

/// A parsed template. Renders any number of conversations; thread-safe.
/// The language is Jinja as transformers 5 sets it up: a sandbox with trim_blocks, lstrip_blocks,
/// loop controls, tojson without HTML escapes, raise_exception, strftime_now and {% generation %}.
/// See docs/chat-templates.md.
class ChatTemplate {
 public:
  /// Errors: invalid_file naming the line; unsupported for parts of Jinja that chat templates do
  /// not use.
  static Result<ChatTemplate> parse(std::string_view source);

  /// Errors: invalid_argument with exactly the template's message when it rejects the conversation
  /// (raise_exception); out_of_memory past `limits`; invalid_file or unsupported when the template
  /// does what it cannot. The last three name the template's line.
  [[nodiscard]] Result<Rendered> render(const Conversation& conversation,
                                        const Limits& limits = {}) const;

  /// As above for variables of any shape: what a request gives beyond a Conversation.
  [[nodiscard]] Result<Rendered> render(const Dict& context, std::chrono::local_seconds now,
                                        const Limits& limits = {}) const;

 private:
  struct Syntax;
  explicit ChatTemplate(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}

  std::shared_ptr<const Syntax> syntax_;  // shared because nothing ever changes it
};

}  // namespace hearth::chat
