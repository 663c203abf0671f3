#include "chat_session.h"

#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.h"

namespace hearth::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// "role: text" of each message.
std::vector<std::string> as_text(const std::vector<chat::Message>& messages) {
  std::vector<std::string> texts;
  for (const auto& message : messages) {
    texts.push_back(message.role + ": " + std::get<std::string>(message.content));
  }
  return texts;
}

/// A session whose model answers "answer 1", "answer 2", ... and remembers what it was asked.
class ChatSessionTest : public testing::Test {
 protected:
  ChatSession::Answerer answerer() {
    return [this](const std::vector<chat::Message>& messages) -> Result<std::string> {
      asked_.push_back(as_text(messages));
      if (fails_) {
        return fail(ErrorCode::invalid_argument, "the prompt has 9 tokens");
      }
      return "answer " + std::to_string(asked_.size());
    };
  }

  std::vector<std::vector<std::string>> asked_;
  bool fails_ = false;
  std::ostringstream talk_;
};

TEST_F(ChatSessionTest, AsksWithTheWholeHistory) {
  ChatSession chat(answerer(), talk_, "be brief");
  chat.take_line("one");
  chat.take_line("  two  ");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("system: be brief", "user: one"),
                                  ElementsAre("system: be brief", "user: one",
                                              "assistant: answer 1", "user: two")));
  EXPECT_FALSE(chat.is_over());
}

TEST_F(ChatSessionTest, IgnoresEmptyLines) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("");
  chat.take_line(" \t");
  chat.take_line("\"\"\"\"\"\"");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(ChatSessionTest, JoinsTheLinesBetweenFences) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("\"\"\"first");
  EXPECT_EQ(chat.prompt(), "... ");
  chat.take_line("  /help is text here");
  chat.take_line("");
  chat.take_line("last\"\"\"");
  EXPECT_EQ(chat.prompt(), ">>> ");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("user: first\n  /help is text here\n\nlast")));
}

TEST_F(ChatSessionTest, TakesFencesOnOneLineAndOnLinesOfTheirOwn) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("\"\"\"one\"\"\"");
  chat.take_line("/clear");
  for (const char* line : {"\"\"\"", "two", "\"\"\""}) {
    chat.take_line(line);
  }
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("user: one"), ElementsAre("user: two\n")));
}

TEST_F(ChatSessionTest, ClearForgetsTheTurnsAndKeepsTheSystemMessage) {
  ChatSession chat(answerer(), talk_, "be brief");
  chat.take_line("one");
  chat.take_line("/clear");
  EXPECT_THAT(as_text(chat.messages()), ElementsAre("system: be brief"));
}

TEST_F(ChatSessionTest, SystemReplacesTheMessageForTheTurnsThatFollow) {
  ChatSession chat(answerer(), talk_, "old");
  chat.take_line("/system  new words ");
  chat.take_line("one");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("system: new words", "user: one")));
}

TEST_F(ChatSessionTest, SystemWithoutTextShowsTheMessage) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("/system");
  EXPECT_EQ(talk_.str(), "there is no system message\n");
  chat.take_line("/system be brief");
  chat.take_line("/system");
  EXPECT_THAT(talk_.str(), HasSubstr("\nbe brief\n"));
}

TEST_F(ChatSessionTest, HelpNamesEveryCommand) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("/help");
  for (const char* name : {"/help", "/system TEXT", "/clear", "/bye", "\"\"\"", "Ctrl-C"}) {
    EXPECT_THAT(talk_.str(), HasSubstr(name));
  }
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(ChatSessionTest, ByeEndsTheChat) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("/bye");
  EXPECT_TRUE(chat.is_over());
}

TEST_F(ChatSessionTest, RefusesAnUnknownCommandWithoutAskingTheModel) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("/quit now");
  EXPECT_EQ(talk_.str(), "/quit is not a command; /help lists them\n");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(ChatSessionTest, TakesAPathForAMessage) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("/usr/bin is a folder");
  chat.take_line("/");
  EXPECT_EQ(asked_.size(), 2);
}

TEST_F(ChatSessionTest, ForgetsAMessageWhoseAnswerFailed) {
  ChatSession chat(answerer(), talk_);
  fails_ = true;
  chat.take_line("too long");
  EXPECT_EQ(talk_.str(), "hearth: the prompt has 9 tokens\n");
  EXPECT_THAT(chat.messages(), IsEmpty());
  fails_ = false;
  chat.take_line("short");
  EXPECT_THAT(asked_.back(), ElementsAre("user: short"));
}

TEST_F(ChatSessionTest, SaysHowToMakeRoomWhenAConversationHasGrownTooLong) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("short");
  fails_ = true;
  chat.take_line("too long");
  EXPECT_THAT(talk_.str(), HasSubstr("/clear"));
}

TEST_F(ChatSessionTest, InterruptDropsWhatIsBeingTyped) {
  ChatSession chat(answerer(), talk_);
  chat.take_line("\"\"\"first");
  chat.interrupt();
  EXPECT_EQ(chat.prompt(), ">>> ");
  chat.take_line("second");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("user: second")));
}

TEST_F(ChatSessionTest, InterruptAtAnEmptyPromptSaysHowToLeave) {
  ChatSession chat(answerer(), talk_);
  chat.interrupt();
  EXPECT_THAT(talk_.str(), HasSubstr("/bye"));
  EXPECT_FALSE(chat.is_over());
}

}  // namespace
}  // namespace hearth::app
