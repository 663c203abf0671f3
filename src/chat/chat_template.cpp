#include "chat/chat_template.h"

#include <utility>

#include "chat/template/ast.h"
#include "chat/template/evaluator.h"
#include "chat/template/parser.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

struct ChatTemplate::Syntax {
  Body body;
};

std::string Rendered::text() const {
  std::string text;
  for (const TextPart& part : parts) {
    text += part.text;
  }
  return text;
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  HEARTH_ASSIGN(auto body, parse_template(source));
  return ChatTemplate(std::make_shared<const Syntax>(Syntax{std::move(body)}));
}

Result<Rendered> ChatTemplate::render(const Conversation& conversation,
                                      const Limits& limits) const {
  return render(to_context(conversation), conversation.now, limits);
}

Result<Rendered> ChatTemplate::render(const Dict& context, std::chrono::local_seconds now,
                                      const Limits& limits) const {
  Runtime runtime(limits, now);
  Evaluator evaluator(runtime, context);
  HEARTH_ASSIGN(const Text text, evaluator.run(syntax_->body));
  return Rendered{text.parts()};
}

}  // namespace hearth::chat
