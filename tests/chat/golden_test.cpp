/// Renders against Python's jinja2; see tests/golden/chat/PROVENANCE.md.
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/chat/json_value.h"
#include "tests/chat/render.h"

namespace hearth::chat {
namespace {

const std::filesystem::path golden_dir = std::filesystem::path(HEARTH_TESTS_DIR) / "golden/chat";
const std::filesystem::path released_dir =
    std::filesystem::path(HEARTH_SHARED_DATA_DIR) / "templates";

/// What happened, in the words of the golden files.
struct Outcome {
  std::string kind;  // "text", "raises" or "fails"
  std::string text;

  explicit Outcome(const Result<Rendered>& rendered) {
    if (rendered) {
      kind = "text";
      text = rendered->text();
    } else {
      kind = rendered.error().code == ErrorCode::invalid_argument ? "raises" : "fails";
      text = rendered.error().message;
    }
  }
};

std::string fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return format("{:016x}", hash);
}

Dict context_of(const Json& conversation) {
  Dict context;
  for (const std::string name : {"bos", "eos", "unk", "pad"}) {
    context.set(name + "_token", Value("<|" + name + "|>", Origin::trusted));
  }
  const Json variables = conversation.value("variables", Json::object());
  for (const auto& [name, value] : variables.items()) {
    context.set(name, value_from(value));
  }
  context.set("messages", value_from(conversation["messages"]));
  context.set("tools", value_from(conversation.value("tools", Json())));
  context.set("documents", value_from(conversation.value("documents", Json())));
  context.set("add_generation_prompt", Value(conversation.value("add_generation_prompt", true)));
  return context;
}

/// Conversations by name.
std::map<std::string, Dict> conversations() {
  std::map<std::string, Dict> contexts;
  for (const Json& conversation : read_json(golden_dir / "conversations.json")) {
    contexts.emplace(conversation["name"].get<std::string>(), context_of(conversation));
  }
  return contexts;
}

std::filesystem::path path_of(const std::string& template_name) {
  const auto committed = golden_dir / (template_name + ".jinja");
  return std::filesystem::exists(committed) ? committed : released_dir / (template_name + ".jinja");
}

TEST(ChatTemplateGolden, EverySnippetRendersAsInJinja) {
  const Json golden = read_json(golden_dir / "snippets.json");
  const Value variables = value_from(golden["variables"]);
  for (const Json& snippet : golden["snippets"]) {
    const auto source = snippet["template"].get<std::string>();
    const Outcome outcome(render(source, *variables.as_dict()));
    SCOPED_TRACE(source + "\ngave " + outcome.kind + ": " + outcome.text);
    EXPECT_TRUE(snippet.contains(outcome.kind));
    if (snippet.contains(outcome.kind) && outcome.kind != "fails") {
      EXPECT_EQ(outcome.text, snippet[outcome.kind].get<std::string>());
    }
  }
}

class FullText : public testing::TestWithParam<const char*> {};

TEST_P(FullText, OfEveryConversationIsThatOfJinja) {
  const std::string name = GetParam();
  if (!std::filesystem::exists(path_of(name))) {
    GTEST_SKIP() << "no public template " << name;
  }
  const auto chat_template = ChatTemplate::parse(read_text(path_of(name)));
  ASSERT_TRUE(chat_template) << chat_template.error().message;
  const auto contexts = conversations();
  const Json golden = read_json(golden_dir / "rendered" / (name + ".json"));
  for (const auto& [conversation, expected] : golden.items()) {
    const Outcome outcome(chat_template->render(contexts.at(conversation), test_clock()));
    SCOPED_TRACE(conversation + " gave " + outcome.kind + ": " + outcome.text);
    ASSERT_TRUE(expected.contains(outcome.kind));
    EXPECT_EQ(outcome.text, expected[outcome.kind].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(ChatTemplateGolden, FullText,
                         testing::Values("smollm2", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B",
                                         "Qwen3.5-4B", "google-gemma-2-2b-it",
                                         "google-gemma-4-31B-it"));

TEST(ChatTemplateGolden, EveryReleasedTemplateRendersEveryConversationAsInJinja) {
  if (!std::filesystem::exists(released_dir)) {
    GTEST_SKIP() << "no public templates";
  }
  const auto contexts = conversations();
  std::map<std::string, Result<ChatTemplate>> templates;
  std::ifstream lines(golden_dir / "fingerprints.txt");
  int n_renders = 0;
  for (std::string name, conversation, kind, hash; lines >> name >> conversation >> kind >> hash;) {
    const auto [at, is_new] = templates.try_emplace(name, Failure(Error{}));
    if (is_new) {
      at->second = ChatTemplate::parse(read_text(path_of(name)));
    }
    ASSERT_TRUE(at->second) << name << ": " << at->second.error().message;
    const Outcome outcome(at->second->render(contexts.at(conversation), test_clock()));
    EXPECT_EQ(outcome.kind, kind) << name << " " << conversation << ": " << outcome.text;
    if (kind != "fails") {
      EXPECT_EQ(fnv1a(outcome.text), hash) << name << " " << conversation << ": " << outcome.text;
    }
    ++n_renders;
  }
  EXPECT_EQ(n_renders, static_cast<int>(templates.size() * contexts.size()));
  EXPECT_GE(templates.size(), 60u);
}

}  // namespace
}  // namespace hearth::chat
