/// The MTP head against an independent implementation, and the drafter against the head.

#include "engine/speculate/mtp_drafter.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

class MtpTest : public testing::TestWithParam<const char*> {
 protected:
  MtpTest() : golden_(model::load_golden_model(GetParam())) {
    model_ = *model::Model::open(golden_.gguf_path);
    n_ = static_cast<std::int64_t>(golden_.prompt.size());
  }

  std::unique_ptr<Runner> runner(backend::Backend& backend) const {
    auto made = Runner::create(*model_, backend,
                               {.kv_dtype = DType::f32,
                                .n_kv_blocks = 2,
                                .max_rows = n_,
                                .max_logit_rows = n_,
                                .n_stored_rows = mtp_stored_rows(1, n_)});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return std::move(*made);
  }

  /// Logits of the trunk at the last token of the prompt; its hidden rows are stored.
  std::vector<float> run_trunk(Runner& runner, const MtpDrafter& drafter) const {
    StepBlock step;
    const auto sequence = step.add_sequence(table_, 0);
    for (std::int64_t p = 0; p < n_; ++p) {
      step.add_row(sequence, {.token = golden_.prompt[static_cast<std::size_t>(p)],
                              .position = p,
                              .wants_logits = p + 1 == n_,
                              .row_target = drafter.stored_row(0, p)});
    }
    const auto logits = runner.run(step.view());
    EXPECT_TRUE(logits.has_value()) << logits.error().message;
    return {logits->begin(), logits->end()};
  }

  /// Logits of the head at positions [first, end).
  std::vector<float> run_head(Runner& runner, const MtpDrafter& drafter, std::int64_t first,
                              std::int64_t end) const {
    StepBlock step;
    const auto sequence = step.add_sequence(table_, 0);
    for (std::int64_t p = first; p < end; ++p) {
      step.add_row(sequence, {.token = golden_.prompt[static_cast<std::size_t>(p) + 1],
                              .position = p,
                              .wants_logits = true,
                              .row_source = drafter.stored_row(0, p),
                              .row_target = static_cast<std::int32_t>(mtp_stored_rows(1, n_) - 1)});
    }
    const auto logits = runner.run_mtp(step.view());
    EXPECT_TRUE(logits.has_value()) << logits.error().message;
    return {logits->begin(), logits->end()};
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::int64_t n_ = 0;
  std::vector<std::int32_t> table_{1, 0};
};

TEST_P(MtpTest, LogitsAreThoseOfAnIndependentImplementation) {
  ASSERT_FALSE(golden_.mtp_logits.empty());
  std::vector<float> first;
  for (const bool is_reference : {true, false}) {
    const auto backend = is_reference ? backend::make_reference_backend() : engine_backend(1);
    const auto run = runner(*backend);
    const MtpDrafter drafter(*run, 1);
    run_trunk(*run, drafter);
    const auto logits = run_head(*run, drafter, 0, n_ - 1);
    ASSERT_EQ(logits.size(), golden_.mtp_logits.size());
    float largest = 0;
    float worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      largest = std::max(largest, std::abs(golden_.mtp_logits[i]));
      worst = std::max(worst, std::abs(logits[i] - golden_.mtp_logits[i]));
    }
    EXPECT_LE(worst / largest, 1e-5f) << "largest difference " << worst;
    first = first.empty() ? logits : first;
    EXPECT_EQ(logits, first);
  }
}

TEST_P(MtpTest, TheTrunkComputesTheSameWithAndWithoutTheHead) {
  const auto backend = engine_backend(1);
  const auto with = runner(*backend);
  const MtpDrafter drafter(*with, 1);
  const auto stored = run_trunk(*with, drafter);
  const auto without = *Runner::create(
      *model_, *backend,
      {.kv_dtype = DType::f32, .n_kv_blocks = 2, .max_rows = n_, .max_logit_rows = n_});
  EXPECT_EQ(run_trunk(*without, drafter), stored);
}

TEST_P(MtpTest, ReadingStoresTheKeysAndValuesThatGuessingStores) {
  std::vector<std::unique_ptr<backend::Backend>> backends;
  backends.push_back(backend::make_reference_backend());
  backends.push_back(engine_backend(1));
#if !defined(HEARTH_SANITIZED)  // slow there, and its accesses are those of tests/backend/gpu
  backends.push_back(backend::gpu_backend());
#endif
  for (const auto& backend : backends) {
    const auto guessing = runner(*backend);
    const MtpDrafter drafter(*guessing, 1);
    run_trunk(*guessing, drafter);
    const auto all = run_head(*guessing, drafter, 0, n_ - 1);

    const auto reading = runner(*backend);
    run_trunk(*reading, drafter);
    StepBlock step;
    const auto sequence = step.add_sequence(table_, 0);
    for (std::int64_t p = 0; p + 2 < n_; ++p) {
      step.add_row(sequence, {.token = golden_.prompt[static_cast<std::size_t>(p) + 1],
                              .position = p,
                              .row_source = drafter.stored_row(0, p),
                              .row_target = -1});
    }
    const auto read = reading->run_mtp_reading(step.view());
    ASSERT_TRUE(read) << backend->name() << ": " << read.error().message;
    const std::vector<float> expected(all.end() - golden_.n_vocab, all.end());
    EXPECT_EQ(run_head(*reading, drafter, n_ - 2, n_ - 1), expected) << backend->name();
  }
}

TEST_P(MtpTest, TheFirstGuessIsTheMostLikelyTokenHoweverRowsWereRead) {
  const auto backend = engine_backend(1);
  const auto run = runner(*backend);
  MtpDrafter drafter(*run, 1);
  run_trunk(*run, drafter);
  const auto logits = run_head(*run, drafter, 0, n_ - 1);
  const auto last = logits.end() - golden_.n_vocab;
  const auto expected =
      static_cast<TokenId>(std::max_element(last, last + model_->n_usable_tokens()) - last);

  std::vector<TokenId> drafts;
  const DraftTask task{.seat = 0,
                       .tokens = golden_.prompt,
                       .n_computed = n_ - 1,
                       .block_table = table_,
                       .depth = 3,
                       .drafts = &drafts};
  ASSERT_TRUE(drafter.draft({&task, 1}).has_value());
  ASSERT_EQ(drafts.size(), 3u);
  EXPECT_EQ(drafts.front(), expected);
  // Guesses that were not taken leave nothing behind.
  std::vector<TokenId> again;
  const DraftTask same{.seat = 0,
                       .tokens = golden_.prompt,
                       .n_computed = n_ - 1,
                       .block_table = table_,
                       .depth = 3,
                       .drafts = &again};
  ASSERT_TRUE(drafter.draft({&same, 1}).has_value());
  EXPECT_EQ(again, drafts);
}

INSTANTIATE_TEST_SUITE_P(Models, MtpTest, testing::Values("qwen35-heads", "qwen35moe"));

}  // namespace
}  // namespace hearth::engine
