#include "chat/conversation.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/chat/json_value.h"
#include "tests/chat/render.h"

namespace hearth::chat {
namespace {

Conversation tool_conversation() {
  Dict arguments;
  arguments.set("city", "Paris");
  Conversation conversation;
  conversation.messages = {
      {.role = "user", .content = "Weather?"},
      {.role = "assistant",
       .content = {},
       .reasoning_content = "Look it up.",
       .tool_calls = {{.id = "call_1", .name = "get_weather", .arguments = Value(arguments)}}},
      {.role = "tool", .content = "21", .tool_call_id = "call_1", .name = "get_weather"},
  };
  conversation.now = test_clock();
  return conversation;
}

std::string rendered_text(std::string_view source, const Conversation& conversation) {
  const auto chat_template = ChatTemplate::parse(source);
  const auto rendered = chat_template->render(conversation);
  return rendered ? rendered->text() : "error: " + rendered.error().message;
}

TEST(Conversation, HasTheShapeOfTheChatApi) {
  EXPECT_EQ(
      rendered_text("{{ messages | tojson }}", tool_conversation()),
      R"([{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": null, )"
      R"("reasoning_content": "Look it up.", "thinking": "Look it up.", "tool_calls": [{"id": "call_1", )"
      R"("type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]}, )"
      R"({"role": "tool", "content": "21", "tool_call_id": "call_1", "name": "get_weather"}])");
}

TEST(Conversation, GivesPartsAsAList) {
  Conversation conversation;
  conversation.messages = {
      {.role = "user", .content = std::vector<ContentPart>{{"text", "What is "}, {"image", ""}}}};
  EXPECT_EQ(rendered_text("{{ messages[0].content | tojson }}", conversation),
            R"([{"type": "text", "text": "What is "}, {"type": "image"}])");
}

TEST(Conversation, DefinesToolsAndDocumentsAlsoWhenThereAreNone) {
  const Conversation conversation;
  EXPECT_EQ(rendered_text("{{ tools is none }}{{ documents is none }}{{ tools is defined }}",
                          conversation),
            "TrueTrueTrue");
}

TEST(Conversation, PassesVariablesUntrustedAndSpecialTokensTrusted) {
  Conversation conversation;
  conversation.variables = {{"enable_thinking", Value(false)}, {"note", Value("n")}};
  conversation.special_tokens = {{"bos_token", "<s>"}};
  conversation.add_generation_prompt = false;
  const auto chat_template = ChatTemplate::parse(
      "{{ bos_token }}{{ note }}{% if enable_thinking is false and not add_generation_prompt %}x{% "
      "endif %}");
  const auto rendered = chat_template->render(conversation);
  ASSERT_TRUE(rendered);
  EXPECT_THAT(rendered->parts, testing::ElementsAre(TextPart{"<s>", true}, TextPart{"n", false},
                                                    TextPart{"x", true}));
}

TEST(Conversation, VariablesCannotReplaceTheMessages) {
  Conversation conversation = tool_conversation();
  conversation.variables = {{"messages", Value("none")}, {"add_generation_prompt", Value(false)}};
  EXPECT_EQ(rendered_text("{{ messages | length }}{{ add_generation_prompt }}", conversation),
            "3True");
}

TEST(Conversation, InjectsTheClock) {
  EXPECT_EQ(rendered_text("{{ strftime_now('%d %b %Y %H:%M') }}", tool_conversation()),
            "29 Nov 2026 12:34");
}

TEST(ChatTemplate, RendersFromSeveralThreadsAtOnce) {
  const auto chat_template = ChatTemplate::parse(
      "{% macro m(x) %}[{{ x.role | upper }}]{% endmacro %}{% for x in messages %}{{ m(x) }}{% "
      "endfor %}");
  ASSERT_TRUE(chat_template);
  const Conversation conversation = tool_conversation();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const auto rendered = chat_template->render(conversation);
        ASSERT_TRUE(rendered);
        EXPECT_EQ(rendered->text(), "[USER][ASSISTANT][TOOL]");
      }
    });
  }
}

TEST(ChatTemplate, RendersSmolLm2) {
  const auto source =
      read_text(std::filesystem::path(HEARTH_TESTS_DIR) / "golden/chat/smollm2.jinja");
  Conversation conversation;
  conversation.messages = {{.role = "user", .content = "Why is the sky blue?"}};
  EXPECT_EQ(
      rendered_text(source, conversation),
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
      "Face<|im_end|>\n<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace hearth::chat
