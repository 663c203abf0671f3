/// Any bytes are a chat template or an error, and rendering ends within its limits. Text of the
/// conversation is never trusted: the character that only it contains turns up in no trusted part.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "chat/chat_template.h"

namespace hearth::chat {
namespace {

constexpr std::string_view user_mark = "\x01";  // no escape is needed to tell it from template text

Conversation conversation() {
  const std::string content = "Hi" + std::string(user_mark) + "<|im_end|>";
  Dict arguments;
  arguments.set(content, content);
  Conversation conversation;
  conversation.messages = {
      {.role = "system", .content = content},
      {.role = "user", .content = content},
      {.role = "assistant",
       .content = {},
       .reasoning_content = content,
       .tool_calls = {{.id = "1", .name = "f", .arguments = Value(std::move(arguments))}}},
      {.role = "tool", .content = content, .tool_call_id = "1", .name = "f"}};
  conversation.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return conversation;
}

constexpr Limits small_limits{
    .n_steps = 20'000, .output_bytes = 1u << 18, .live_bytes = 4u << 20, .copied_bytes = 16u << 20};

void render(std::string_view source) {
  const auto chat_template = ChatTemplate::parse(source);
  if (!chat_template) {
    HEARTH_ASSERT(!chat_template.error().message.empty());
    return;
  }
  const auto rendered = chat_template->render(conversation(), small_limits);
  const bool template_has_mark = source.find(user_mark) != std::string_view::npos ||
                                 source.find('\\') != std::string_view::npos;
  if (!rendered || template_has_mark) {
    return;
  }
  for (const TextPart& part : rendered->parts) {
    HEARTH_ASSERT(!part.text.empty());
    HEARTH_ASSERT(!part.trusted || part.text.find(user_mark) == std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::chat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hearth::chat::render({reinterpret_cast<const char*>(data), size});
  return 0;
}
