#pragma once

#include <cstdint>
#include <vector>

namespace hearth::engine {

/// What a step that only decoded did and took.
struct DecodeStep {
  std::int64_t n_sequences = 0;
  std::int64_t n_drafted = 0;  // guesses that were checked, over all sequences
  std::int64_t n_tokens = 0;   // that sequences gained
  double draft_seconds = 0;
  double step_seconds = 0;
};

/// Decides how many tokens to guess from what guessing has cost and how often guesses were right.
/// It may be wrong for a while, but not for long: what guessing has lost against plain steps is
/// kept below a small part of all the time spent, and nothing is guessed while it is not. The same
/// goes for what drafters read of prompts and answers, which guesses have to win back first.
class DepthChooser {
 public:
  explicit DepthChooser(std::int64_t max_depth);

  /// Guesses per sequence for the next step, 0 to max_depth, while n_sequences decode.
  [[nodiscard]] std::int64_t choose(std::int64_t n_sequences);
  /// Whether the drafter may read a further sequence along, so that guesses can be made for it.
  [[nodiscard]] bool may_read() const;

  /// A sequence was given `drafted` guesses, of which the first `accepted` were right.
  void record_guesses(std::int64_t drafted, std::int64_t accepted);
  /// Steps that also read prompts are not for this: they say nothing about decoding.
  void record(const DecodeStep& step);
  /// Time that went into other steps.
  void record_other(double seconds);
  /// Time in which the drafter only read what there was.
  void record_reading(double seconds);

  /// Seconds that guessing has saved so far, as measured, reading included; negative where it was
  /// in vain.
  [[nodiscard]] double saved_seconds() const { return saved_seconds_; }

 private:
  /// A mean in which old samples fade.
  class Average {
   public:
    void add(double sample);
    [[nodiscard]] bool has_samples() const { return weight_ > 0; }
    [[nodiscard]] bool has_several_samples() const { return weight_ > 2; }
    [[nodiscard]] double value() const { return sum_ / weight_; }

   private:
    double sum_ = 0;
    double weight_ = 0;
  };

  [[nodiscard]] bool is_measured(std::int64_t n_rows) const;
  [[nodiscard]] bool has_drafted() const;
  /// Well enough to compare with.
  [[nodiscard]] bool is_known(std::int64_t n_rows) const;
  /// The expected gain in tokens of `depth` guesses, plus the one token of a plain step.
  [[nodiscard]] double expected_tokens(std::int64_t depth) const;
  /// Expected seconds of a step of that many rows, from those of steps that were measured.
  [[nodiscard]] double step_seconds(std::int64_t n_rows) const;
  [[nodiscard]] double draft_seconds(std::int64_t depth) const;
  [[nodiscard]] std::int64_t best_depth(std::int64_t n_sequences) const;

  std::int64_t max_depth_;
  std::vector<Average> steps_;   // seconds, by rows
  std::vector<Average> drafts_;  // seconds, by depth
  std::vector<Average> hits_;    // 0 or 1, by place of the guess
  std::int64_t n_since_plain_ = 0;
  std::int64_t n_until_trial_ = 0;
  double debt_ = 0;          // seconds lost by guessing and not yet won back
  double reading_debt_ = 0;  // the same by reading
  double total_seconds_ = 0;
  double saved_seconds_ = 0;
};

}  // namespace hearth::engine
