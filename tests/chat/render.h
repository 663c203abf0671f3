#pragma once
/// Rendering small templates in tests.

#include <string>
#include <string_view>

#include "chat/chat_template.h"

namespace hearth::chat {

/// 2026-11-29 12:34:56, the clock of every test.
inline std::chrono::local_seconds test_clock() {
  using namespace std::chrono;
  return local_days(year(2026) / November / 29) + hours(12) + minutes(34) + seconds(56);
}

inline Result<Rendered> render(std::string_view source, const Dict& context = {},
                               const Limits& limits = {}) {
  HEARTH_ASSIGN(const auto chat_template, ChatTemplate::parse(source));
  return chat_template.render(context, test_clock(), limits);
}

/// The text, or "error: " and the message.
inline std::string rendered_text(std::string_view source, const Dict& context = {},
                                 const Limits& limits = {}) {
  const auto rendered = render(source, context, limits);
  return rendered ? rendered->text() : "error: " + rendered.error().message;
}

/// The parts with untrusted ones in angle quotes: "a«b»c".
inline std::string marked_text(std::string_view source, const Dict& context) {
  const auto rendered = render(source, context);
  if (!rendered) {
    return "error: " + rendered.error().message;
  }
  std::string text;
  for (const TextPart& part : rendered->parts) {
    text += part.trusted ? part.text : "«" + part.text + "»";
  }
  return text;
}

/// A context of one variable.
inline Dict with(std::string_view name, Value value) {
  Dict context;
  context.set(Value(std::string(name)), std::move(value));
  return context;
}

}  // namespace hearth::chat
