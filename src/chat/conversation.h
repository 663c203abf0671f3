#pragma once
/// What a chat template renders: messages, tools and switches, in the shape of the OpenAI chat API.

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/template/value.h"

namespace hearth::chat {

/// One piece of a message's content.
struct ContentPart {
  std::string type;  // "text", "image", "audio", "video"
  std::string text;  // for "text"
};

/// A function call that an assistant turn made.
struct ToolCall {
  std::string id;
  std::string name;
  Value arguments;  // a mapping; templates iterate over it
};

/// One message. Everything in it is untrusted: it can never become a control token.
struct Message {
  std::string role;  // "system", "user", "assistant", "tool", ...
  /// Text, or parts for templates that take images; nothing for a turn that only calls tools.
  std::variant<std::monostate, std::string, std::vector<ContentPart>> content;
  std::optional<std::string> reasoning_content;
  std::vector<ToolCall> tool_calls;
  std::optional<std::string> tool_call_id;  // of a "tool" message: the call it answers
  std::optional<std::string> name;          // of a "tool" message: the function
};

struct Conversation {
  std::vector<Message> messages;
  Value tools;      // the array of the API, complete and in order; none without tools
  Value documents;  // for retrieval templates; none without
  bool add_generation_prompt = true;
  /// Further variables by name: enable_thinking, reasoning_effort, ... Untrusted.
  std::vector<std::pair<std::string, Value>> variables;
  /// The model's own tokens by the names templates use: {"bos_token", "<s>"}. Trusted.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  /// What strftime_now tells.
  std::chrono::local_seconds now{};
};

/// A message as the mapping templates see. Reasoning also goes by its older name "thinking", as in
/// transformers.
[[nodiscard]] Value to_value(const Message& message);

/// All the variables of a template.
[[nodiscard]] Dict to_context(const Conversation& conversation);

}  // namespace hearth::chat
