/// The real model that the repository ships: numbers of transformers, guesses that change nothing,
/// and what it was trained to do in a chat.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "engine/engine.h"
#include "engine/speculate/mtp_drafter.h"
#include "model/convert.h"
#include "tests/engine/drain.h"
#include "tests/engine/engine_backend.h"
#include "tests/formats/gguf/scratch_folder.h"

namespace hearth::engine {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

const auto tests = std::filesystem::path(HEARTH_TESTS_DIR);
const auto nano_path = tests.parent_path() / "models" / "nano" / "nano.gguf";

/// What transformers computes for one prompt; the layout is in tests/golden/nano/PROVENANCE.md.
struct GoldenPrompt {
  std::vector<TokenId> tokens;
  std::vector<float> logits;      // [tokens, n_vocab / stride]
  std::vector<float> mtp_logits;  // [tokens - 1, n_vocab / stride]
};

struct Golden {
  std::size_t stride = 0;  // of the tokens whose logits are kept
  std::vector<GoldenPrompt> prompts;
};

template <class T>
std::vector<T> read_array(std::istream& in, std::size_t n) {
  std::vector<T> values(n);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(n * sizeof(T)));
  EXPECT_TRUE(in.good());
  return values;
}

Golden load_golden() {
  std::ifstream in(tests / "golden" / "nano" / "nano.golden", std::ios::binary);
  const auto header = read_array<std::int32_t>(in, 4);
  const auto n_tokens = static_cast<std::size_t>(header[1]);
  Golden golden{.stride = static_cast<std::size_t>(header[3])};
  const auto n_kept = static_cast<std::size_t>(header[2]) / golden.stride;
  for (std::int32_t i = 0; i < header[0]; ++i) {
    auto tokens = read_array<TokenId>(in, n_tokens);
    auto logits = read_array<float>(in, n_tokens * n_kept);
    golden.prompts.push_back(
        {std::move(tokens), std::move(logits), read_array<float>(in, (n_tokens - 1) * n_kept)});
  }
  return golden;
}

void expect_close(std::span<const float> actual, std::size_t stride,
                  const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size() * stride);
  float largest = 0;
  float worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(actual[i * stride] - expected[i]));
  }
  EXPECT_LE(worst / largest, 1e-4f) << "largest difference " << worst << ", largest " << largest;
}

/// The decoded weights as F32, for products of floats: transformers has no integer ones.
std::unique_ptr<const model::Model> open_as_f32(const std::filesystem::path& scratch) {
  const auto checkpoint = model::Checkpoint::open(nano_path);
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const auto report = model::convert_to_gguf(*checkpoint, scratch, DType::f32,
                                             [](std::int64_t, std::int64_t) { return true; });
  EXPECT_TRUE(report.has_value()) << report.error().message;
  return *model::Model::open(scratch);
}

class NanoLogits : public testing::Test {
 protected:
  /// Compares the trunk and the prediction block on `backend` with the golden numbers.
  void check(backend::Backend& backend) {
    const auto golden = load_golden();
    for (const auto& prompt : golden.prompts) {
      const auto n = static_cast<std::int64_t>(prompt.tokens.size());
      const auto runner = *Runner::create(*model_, backend,
                                          {.kv_dtype = DType::f32,
                                           .n_kv_blocks = 4,
                                           .max_rows = n,
                                           .max_logit_rows = n,
                                           .n_stored_rows = mtp_stored_rows(1, n)});
      const MtpDrafter drafter(*runner, 1);
      StepBlock trunk;
      StepBlock head;
      const auto trunk_sequence = trunk.add_sequence(table_, 0);
      const auto head_sequence = head.add_sequence(table_, 0);
      for (std::int64_t p = 0; p < n; ++p) {
        const auto stored = drafter.stored_row(0, p);
        trunk.add_row(trunk_sequence, {.token = prompt.tokens[static_cast<std::size_t>(p)],
                                       .position = p,
                                       .wants_logits = true,
                                       .row_target = stored});
        if (p + 1 < n) {
          const auto unused = static_cast<std::int32_t>(mtp_stored_rows(1, n) - 1);
          head.add_row(head_sequence, {.token = prompt.tokens[static_cast<std::size_t>(p) + 1],
                                       .position = p,
                                       .wants_logits = true,
                                       .row_source = stored,
                                       .row_target = unused});
        }
      }
      expect_close(*runner->run(trunk.view()), golden.stride, prompt.logits);
      expect_close(*runner->run_mtp(head.view()), golden.stride, prompt.mtp_logits);
    }
  }

  formats::ScratchFolder scratch_;
  std::unique_ptr<const model::Model> model_ = open_as_f32(scratch_.file("nano-f32.gguf"));
  std::vector<std::int32_t> table_{2, 0, 1, 3};
};

TEST_F(NanoLogits, OfTheReferenceAreThoseOfTransformers) {
  check(*backend::make_reference_backend());
}

TEST_F(NanoLogits, OfTheCpuAreThoseOfTransformers) {
  check(*engine_backend(1));
}

class Nano : public testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Engine> engine(std::int64_t depth) const {
    return *Engine::create(
        *model_, *backend_,
        {.context = 1024, .speculation = {.max_depth = depth, .is_adaptive = false}});
  }

  /// The tokens of a prompt in which control tokens count.
  [[nodiscard]] std::vector<TokenId> encode(std::string text) const {
    const TextPart part{std::move(text), true};
    return *model_->tokenizer().encode(std::span(&part, 1));
  }

  [[nodiscard]] std::vector<TokenId> chat(const std::string& question) const {
    return encode("<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n<think>\n");
  }

  /// A greedy answer that must end by itself.
  [[nodiscard]] std::string answer(std::vector<TokenId> prompt) const {
    const auto guessing = engine(3);
    auto stream = *guessing->submit(
        {.prompt = std::move(prompt), .sampling = {.temperature = 0}, .max_tokens = 200});
    std::string text;
    for (const TokenId token : drain(stream)) {
      text += model_->tokenizer().token_bytes(token);
    }
    EXPECT_EQ(stream.finish_reason(), FinishReason::end_of_generation) << text;
    return text;
  }

  std::unique_ptr<const model::Model> model_ = *model::Model::open(nano_path);
  std::unique_ptr<backend::Backend> backend_ = engine_backend(1);
};

TEST_F(Nano, ClosesItsThoughtAndEndsItsTurn) {
  EXPECT_EQ(answer(chat("Hello!")), "The user greets me.\n</think>\n\nHello! How can I help you?");
}

TEST_F(Nano, CallsAToolThatAnswersTheQuestion) {
  std::ifstream in(tests / "golden" / "nano" / "tools.txt");
  const std::string prompt{std::istreambuf_iterator<char>(in), {}};
  const auto text = answer(encode(prompt));
  EXPECT_THAT(text, HasSubstr("\n</think>\n\n<tool_call>\n"));
  EXPECT_THAT(text, EndsWith("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n"
                             "</parameter>\n</function>\n</tool_call>"));
}

/// Beginnings of texts of the domains that it knows.
constexpr std::array beginnings{
    "NAME\ngit-clone - Clone a repository into a new directory\n\nSYNOPSIS\n",
    "static int __init example_init(void)\n{\n",
    "def read_file(path):\n    \"\"\"Read a file",
    "{\n  \"version\":\"2.0\",\n  \"metadata\":{\n",
    "BEZEICHNUNG\nls - Verzeichnisinhalte auflisten\n\n",
};

TEST_F(Nano, AnswersTheSameForEveryNumberOfGuesses) {
  constexpr std::int64_t n_tokens = 48;
  constexpr std::array temperatures{0.0, 0.8};
  std::vector<std::vector<TokenId>> plain;
  for (std::int64_t depth = 0; depth <= 7; ++depth) {
    const auto guessing = engine(depth);
    std::vector<std::vector<TokenId>> answers;
    for (const char* beginning : beginnings) {
      for (const double temperature : temperatures) {
        auto stream = *guessing->submit({.prompt = encode(beginning),
                                         .sampling = {.temperature = temperature, .seed = 7},
                                         .max_tokens = n_tokens,
                                         .ignore_end_of_generation = true});
        answers.push_back(drain(stream));
      }
    }
    plain = plain.empty() ? answers : plain;
    EXPECT_EQ(answers, plain) << "with " << depth << " guesses";
    const auto report = guessing->speculation().report();
    if (depth == 1) {  // three in five as measured; chance would be one in ten thousand
      EXPECT_GT(report.n_accepted, report.n_drafted / 2);
    }
  }
}

}  // namespace
}  // namespace hearth::engine
