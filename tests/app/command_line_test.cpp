#include "command_line.h"

#include <filesystem>
#include <ios>
#include <istream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "commands.h"

namespace hearth::app {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int code;
  std::string out;
  std::string talk;
};

Outcome run_hearth(std::vector<const char*> arguments, const std::string& input = {}) {
  arguments.insert(arguments.begin(), "hearth");
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream talk;
  Console console{.in = in, .out = out, .talk = talk};
  const int code = run_command_line(arguments, console);
  return {code, out.str(), talk.str()};
}

const std::string tiny_model = HEARTH_TESTS_DIR "/golden/arch/llama.gguf";

TEST(CommandLine, HelpNamesEveryCommand) {
  const auto outcome = run_hearth({"--help"});
  EXPECT_EQ(outcome.code, 0);
  for (const auto& command : all_commands()) {
    EXPECT_THAT(outcome.out, AllOf(HasSubstr(command.name), HasSubstr(command.summary)));
  }
}

TEST(CommandLine, EveryCommandHasHelpOfItsOwn) {
  for (const auto& command : all_commands()) {
    const auto outcome = run_hearth({command.name, "--help"});
    EXPECT_EQ(outcome.code, 0) << command.name;
    EXPECT_THAT(outcome.out, AllOf(HasSubstr("Positionals:"), HasSubstr("--json"))) << command.name;
  }
}

TEST(CommandLine, SelfTestSaysWhatADeviceComputesAndHow) {
  const auto text = run_hearth({"selftest", "embedding Q4", "--device", "cpu", "--no-speed"});
  EXPECT_EQ(text.code, 0) << text.talk;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("embedding Q4_K"), HasSubstr("\n3 ok, 0 refused, 0 wrong\n")));
  const auto json = nlohmann::json::parse(
      run_hearth({"selftest", "embedding Q4_0", "--device", "emulator", "--json"}).out);
  EXPECT_EQ(json["ok"], 1);
  EXPECT_EQ(json["probes"][0]["largest_error"], 0);
  EXPECT_EQ(run_hearth({"selftest", "no such thing"}).code, 1);
}

TEST(CommandLine, PrintsItsVersion) {
  const auto outcome = run_hearth({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("hearth "));
}

TEST(CommandLine, RefusesWhatItCannotUnderstandWithOneLineAndAHint) {
  const std::vector<std::vector<const char*>> misuses{
      {"frobnicate"},
      {"--frobnicate"},
      {"run"},
      {"run", "model", "--frobnicate"},
      {"run", "model", "--temperature", "warm"},
      {"run", "model", "--kv-type", "q3"},
      {"run", "model", "--weights", "heavy"},
      {"run", "model", "--device", "abacus"},
      {"run", "model", "--seed", "-1"},
      {"synth", "llama-tiny", "model", "--seed", "18446744073709551616"},
      {"run", "model", "--context", "0"},
      {"run", "model", "--threads", "0"},
      {"run", "model", "one", "two"},
      {"bench", "model", "--rounds", "0"},
      {"perplexity", "model"},
  };
  for (const auto& arguments : misuses) {
    const auto outcome = run_hearth(arguments);
    EXPECT_EQ(outcome.code, ExitCode::misused) << arguments.back();
    EXPECT_THAT(outcome.talk, AllOf(StartsWith("hearth: "), HasSubstr("--help`"), EndsWith("\n")));
    EXPECT_EQ(outcome.talk.find('\n'), outcome.talk.size() - 1) << "more than a line";
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(CommandLine, NamesTheKnownCommandsWhenOneIsUnknown) {
  EXPECT_THAT(run_hearth({"frobnicate"}).talk,
              AllOf(HasSubstr("'frobnicate'"), HasSubstr("run, show, tokenize")));
}

TEST(CommandLine, NamesWhatAnOptionTakesWhenItGotSomethingElse) {
  EXPECT_THAT(run_hearth({"run", "model", "--kv-type", "q3"}).talk,
              AllOf(HasSubstr("--kv-type: q3"), HasSubstr("q4_0,q8_0")));
  EXPECT_THAT(run_hearth({"run", "model", "--seed", "-1"}).talk, HasSubstr("found '-1'"));
}

TEST(CommandLine, ListsWhatItDidNotExpectInOrderAndThinksOfQuotes) {
  EXPECT_THAT(run_hearth({"run", "model", "why", "is", "it", "blue?"}).talk,
              AllOf(HasSubstr("not expected: is it blue? ("), HasSubstr("quoted")));
  EXPECT_THAT(run_hearth({"run", "model", "why", "--blue"}).talk,
              AllOf(HasSubstr("not expected: --blue;"), Not(HasSubstr("quoted"))));
}

TEST(CommandLine, FailsWithOneLineThatNamesTheFile) {
  const auto outcome = run_hearth({"show", "no/such.gguf"});
  EXPECT_EQ(outcome.code, ExitCode::failed);
  EXPECT_THAT(outcome.talk, AllOf(StartsWith("hearth: "), HasSubstr("no/such.gguf")));
}

TEST(CommandLine, AnswersWhatAPipeBrings) {
  const auto outcome = run_hearth({"run", tiny_model.c_str(), "--raw", "-n", "3"}, "the the\n");
  EXPECT_EQ(outcome.code, 0) << outcome.talk;
  EXPECT_THAT(outcome.out, EndsWith("\n"));
}

TEST(CommandLine, AnswersTheSameWithADraftModel) {
  const std::vector<const char*> alone{"run", tiny_model.c_str(), "the", "--raw", "--json", "-n",
                                       "12",  "--seed",           "1"};
  auto drafted = alone;
  drafted.insert(drafted.end(), {"--draft-model", tiny_model.c_str(), "--draft-depth", "2"});
  const auto expected = run_hearth(alone);
  const auto found = run_hearth(drafted);
  ASSERT_EQ(found.code, 0) << found.talk;
  const auto json = nlohmann::json::parse(found.out);
  EXPECT_EQ(json["tokens"], nlohmann::json::parse(expected.out)["tokens"]);
  EXPECT_GT(json["speculation"]["drafted"], 0);
}

TEST(CommandLine, FailsWhenStandardInputCannotBeRead) {
  struct Broken : std::streambuf {
    int_type underflow() override { throw std::ios_base::failure("a folder"); }
  } broken;
  std::istream in(&broken);
  std::ostringstream out;
  std::ostringstream talk;
  Console console{.in = in, .out = out, .talk = talk};
  for (const char* command : {"run", "tokenize"}) {
    talk.str("");
    in.clear();
    const std::vector<const char*> arguments{"hearth", command, tiny_model.c_str()};
    EXPECT_EQ(run_command_line(arguments, console), ExitCode::failed);
    EXPECT_EQ(talk.str(), "hearth: standard input: cannot be read\n");
  }
}

TEST(CommandLine, WritesModelsToRegularFilesAlone) {
  const std::string fifo = testing::TempDir() + "command_line_test_fifo";
  std::filesystem::remove(fifo);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& out : {fifo, std::string()}) {
    const auto outcome = run_hearth({"synth", "llama-tiny", out.c_str(), "--force"});
    EXPECT_EQ(outcome.code, ExitCode::failed);
    EXPECT_THAT(outcome.talk, StartsWith("hearth: ")) << out;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  std::filesystem::remove(fifo);
}

TEST(CommandLine, TokenizesAndDecodes) {
  const auto ids = run_hearth({"tokenize", tiny_model.c_str(), "the", "--ids"});
  EXPECT_EQ(ids.code, 0) << ids.talk;
  const auto text = run_hearth({"tokenize", tiny_model.c_str(), "--decode"}, ids.out);
  EXPECT_EQ(text.out, "the\n");
  const auto refused = run_hearth({"tokenize", tiny_model.c_str(), "99999", "--decode"});
  EXPECT_EQ(refused.code, ExitCode::failed);
  EXPECT_THAT(refused.talk, HasSubstr("'99999'"));
}

}  // namespace
}  // namespace hearth::app
