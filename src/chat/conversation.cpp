#include "chat/conversation.h"

namespace hearth::chat {
namespace {

Value to_value(const ContentPart& part) {
  Dict dict;
  dict.set("type", part.type);
  if (part.type == "text") {
    dict.set("text", part.text);
  }
  return Value(std::move(dict));
}

Value to_value(const std::vector<ContentPart>& parts) {
  std::vector<Value> items;
  for (const ContentPart& part : parts) {
    items.push_back(to_value(part));
  }
  return Value(std::move(items));
}

Value to_value(std::monostate /*nothing*/) {
  return Value();
}
Value to_value(const std::string& text) {
  return Value(text);
}

Value to_value(const ToolCall& call) {
  Dict function;
  function.set("name", call.name);
  function.set("arguments", call.arguments);
  Dict dict;
  if (!call.id.empty()) {
    dict.set("id", call.id);
  }
  dict.set("type", "function");
  dict.set("function", Value(std::move(function)));
  return Value(std::move(dict));
}

Value to_value(const std::vector<ToolCall>& calls) {
  std::vector<Value> items;
  for (const ToolCall& call : calls) {
    items.push_back(to_value(call));
  }
  return Value(std::move(items));
}

}  // namespace

Value to_value(const Message& message) {
  Dict dict;
  dict.set("role", message.role);
  dict.set("content",
           std::visit([](const auto& content) { return to_value(content); }, message.content));
  if (message.reasoning_content) {
    dict.set("reasoning_content", *message.reasoning_content);
    dict.set("thinking", *message.reasoning_content);
  }
  if (!message.tool_calls.empty()) {
    dict.set("tool_calls", to_value(message.tool_calls));
  }
  if (message.tool_call_id) {
    dict.set("tool_call_id", *message.tool_call_id);
  }
  if (message.name) {
    dict.set("name", *message.name);
  }
  return Value(std::move(dict));
}

Dict to_context(const Conversation& conversation) {
  std::vector<Value> messages;
  for (const Message& message : conversation.messages) {
    messages.push_back(to_value(message));
  }
  Dict context;
  for (const auto& [name, token] : conversation.special_tokens) {
    context.set(name, Value(token, Origin::trusted));
  }
  for (const auto& [name, value] : conversation.variables) {
    context.set(name, value);
  }
  context.set("messages", Value(std::move(messages)));
  context.set("tools", conversation.tools);
  context.set("documents", conversation.documents);
  context.set("add_generation_prompt", Value::trusted(conversation.add_generation_prompt));
  return context;
}

}  // namespace hearth::chat
