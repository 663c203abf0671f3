#include "engine/speculate/depth_chooser.h"

#include <gtest/gtest.h>

namespace hearth::engine {
namespace {

/// A machine on which a step costs 1 and every further row `row`, and a guess `guess`; the first
/// `n_right` guesses of a step are always right.
struct Machine {
  double row = 0;
  double guess = 0;
  std::int64_t n_right = 0;
  std::int64_t n_sequences = 1;
  std::int64_t answer = 0;  // tokens of each answer; 0: one without end
  double prompt = 0;        // seconds that the model reads the prompt of an answer
  double reading = 0;       // seconds that the drafter reads it along

  /// Runs whole answers, to prompts of their own; returns the seconds.
  double run_answers(DepthChooser& chooser, std::int64_t n_answers) const {
    double seconds = 0;
    for (std::int64_t i = 0; i < n_answers; ++i) {
      chooser.record_other(prompt);
      seconds += prompt;
      const bool is_read = chooser.may_read();
      if (is_read) {
        chooser.record_reading(reading);
        seconds += reading;
      }
      seconds += is_read ? run(chooser, answer) : run_plainly(chooser, answer);
    }
    return seconds;
  }

  /// Steps of sequences that are not read along.
  double run_plainly(DepthChooser& chooser, std::int64_t tokens) const {
    for (std::int64_t i = 0; i < tokens; ++i) {
      chooser.record({.n_sequences = 1, .n_tokens = 1, .step_seconds = 1});
    }
    return static_cast<double>(tokens);
  }

  /// Runs steps until `tokens` are there; returns the seconds.
  double run(DepthChooser& chooser, std::int64_t tokens) const {
    double seconds = 0;
    while (tokens > 0) {
      const std::int64_t depth = chooser.choose(n_sequences);
      const std::int64_t accepted = std::min(depth, n_right);
      for (std::int64_t i = 0; i < n_sequences; ++i) {
        chooser.record_guesses(depth, accepted);
      }
      const auto n_rows = static_cast<double>(n_sequences * (1 + depth));
      const DecodeStep step{.n_sequences = n_sequences,
                            .n_drafted = n_sequences * depth,
                            .n_tokens = n_sequences * (1 + accepted),
                            .draft_seconds = guess * static_cast<double>(depth),
                            .step_seconds = 1 + row * (n_rows - 1)};
      chooser.record(step);
      seconds += step.draft_seconds + step.step_seconds;
      tokens -= step.n_tokens;
    }
    return seconds;
  }
};

TEST(DepthChooser, MeasuresPlainStepsFirst) {
  DepthChooser chooser(4);
  EXPECT_EQ(chooser.choose(1), 0);
}

TEST(DepthChooser, GuessesNothingWhereNothingMayBeGuessed) {
  DepthChooser chooser(0);
  Machine{}.run(chooser, 10);
  EXPECT_EQ(chooser.choose(1), 0);
}

TEST(DepthChooser, GoesToTheDepthThatPays) {
  DepthChooser chooser(7);
  const Machine machine{.row = 0.02, .guess = 0.1, .n_right = 3};
  machine.run(chooser, 500);
  EXPECT_EQ(chooser.choose(1), 3);
  // Four tokens cost 1 + 3 * 0.12.
  EXPECT_LT(machine.run(chooser, 1000), 1000 * 1.36 / 4 * 1.05);
  EXPECT_GT(chooser.saved_seconds(), 600);
}

TEST(DepthChooser, UselessGuessesCostLessThanTwoPercent) {
  DepthChooser chooser(7);
  EXPECT_LT((Machine{.row = 0.9, .guess = 0.5, .n_right = 0}.run(chooser, 2000)), 2000 * 1.02);
}

TEST(DepthChooser, SlowFirstStepsDoNotMakeUselessGuessesLookGood) {
  DepthChooser chooser(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(chooser.choose(1), 0);
    chooser.record({.n_sequences = 1, .n_tokens = 1, .step_seconds = 5});
  }
  EXPECT_LT((Machine{.row = 0.05, .guess = 0.05, .n_right = 0}.run(chooser, 1000)), 1000 * 1.02);
}

TEST(DepthChooser, RightGuessesThatDoNotPayCostLessThanTwoPercent) {
  DepthChooser chooser(4);
  EXPECT_LT((Machine{.row = 0.9, .guess = 0.5, .n_right = 4}.run(chooser, 2000)), 2000 * 1.02);
}

TEST(DepthChooser, DearGuessesCostLittleInTheFirstAnswerEvenIfTheyAreRight) {
  for (const double guess : {1.0, 2.0, 3.0}) {
    DepthChooser chooser(7);
    const Machine machine{.row = 0.05, .guess = guess, .n_right = 7};
    EXPECT_LT(machine.run(chooser, 150), 150 * 1.02) << guess;
    EXPECT_EQ(chooser.choose(1), 0) << guess;
    EXPECT_LT(machine.run(chooser, 5000), 5000 * 1.02) << guess;
  }
}

TEST(DepthChooser, ReadingPromptsForGuessesThatDoNotPayCostsLittle) {
  // Long prompts and short answers: the drafter takes a twentieth of the model's time to read.
  const Machine machine{
      .row = 0.05, .guess = 0.05, .n_right = 0, .answer = 20, .prompt = 200, .reading = 10};
  DepthChooser chooser(4);
  EXPECT_TRUE(chooser.may_read());
  EXPECT_LT(machine.run_answers(chooser, 100), 100 * 220 * 1.02);
  EXPECT_LT(chooser.saved_seconds(), 0);
}

TEST(DepthChooser, ReadsPromptsWhereGuessesWinItBack) {
  const Machine machine{
      .row = 0.05, .guess = 0.05, .n_right = 3, .answer = 100, .prompt = 200, .reading = 10};
  DepthChooser chooser(4);
  EXPECT_LT(machine.run_answers(chooser, 100), 100 * (200 + 10 + 100 * 1.3 / 4) * 1.05);
  EXPECT_TRUE(chooser.may_read());
}

TEST(DepthChooser, NothingIsReadWhereNothingMayBeGuessed) {
  EXPECT_FALSE(DepthChooser(0).may_read());
}

TEST(DepthChooser, StopsWhenGuessesTurnUselessAndGoesOnWhenTheyAreRightAgain) {
  DepthChooser chooser(4);
  const Machine good{.row = 0.05, .guess = 0.05, .n_right = 4};
  const Machine bad{.row = 0.05, .guess = 0.05, .n_right = 0};
  good.run(chooser, 500);
  EXPECT_GT(chooser.choose(1), 0);
  EXPECT_LT(bad.run(chooser, 2000), 2000 * 1.02);
  EXPECT_LT(good.run(chooser, 4000), 4000 * 0.5);
}

TEST(DepthChooser, LooksAtTheCostOfAllSequencesTogether) {
  // Beside seven others a row costs as much as it brings, alone it does not.
  DepthChooser chooser(4);
  const Machine alone{.row = 0.05, .guess = 0, .n_right = 1};
  alone.run(chooser, 300);
  EXPECT_EQ(chooser.choose(1), 1);
  Machine{.row = 1, .guess = 0, .n_right = 1, .n_sequences = 8}.run(chooser, 3000);
  EXPECT_EQ(chooser.choose(8), 0);
}

}  // namespace
}  // namespace hearth::engine
