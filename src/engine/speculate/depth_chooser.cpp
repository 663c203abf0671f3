#include "engine/speculate/depth_chooser.h"

#include <algorithm>

#include "base/assert.h"

namespace hearth::engine {
namespace {

constexpr double fading = 0.9;     // of a sample with every later one
constexpr double max_loss = 0.01;  // of all the time spent, by guessing and by reading each
/// A guess at the unknown: how often a guess is right, and what one more row adds to a step.
constexpr double unknown_hits = 0.8;
constexpr double unknown_row = 0.1;
/// Costs of plain steps are measured anew after so many steps with guesses, and guessing is tried
/// again after so many plain steps.
constexpr std::int64_t max_since_plain = 64;
constexpr std::int64_t steps_between_trials = 100;

}  // namespace

void DepthChooser::Average::add(double sample) {
  sum_ = fading * sum_ + sample;
  weight_ = fading * weight_ + 1;
}

DepthChooser::DepthChooser(std::int64_t max_depth)
    : max_depth_(max_depth),
      drafts_(static_cast<std::size_t>(max_depth) + 1),
      hits_(static_cast<std::size_t>(max_depth)) {}

std::int64_t DepthChooser::choose(std::int64_t n_sequences) {
  HEARTH_ASSERT(n_sequences >= 1);
  if (max_depth_ == 0 || !is_known(n_sequences) || n_since_plain_ >= max_since_plain ||
      debt_ > max_loss * total_seconds_) {
    return 0;
  }
  if (const std::int64_t best = best_depth(n_sequences); best > 0) {
    return best;
  }
  if (n_until_trial_ > 0) {
    return 0;
  }
  n_until_trial_ = steps_between_trials;
  return 1;
}

bool DepthChooser::may_read() const {
  return max_depth_ > 0 && reading_debt_ <= max_loss * total_seconds_;
}

void DepthChooser::record_other(double seconds) {
  total_seconds_ += seconds;
}

void DepthChooser::record_reading(double seconds) {
  total_seconds_ += seconds;
  saved_seconds_ -= seconds;
  reading_debt_ += seconds;
}

void DepthChooser::record_guesses(std::int64_t drafted, std::int64_t accepted) {
  // Nothing is known of the guesses behind the first wrong one.
  for (std::int64_t i = 0; i < std::min(drafted, accepted + 1); ++i) {
    hits_[static_cast<std::size_t>(i)].add(i < accepted ? 1 : 0);
  }
}

void DepthChooser::record(const DecodeStep& step) {
  total_seconds_ += step.draft_seconds + step.step_seconds;
  const std::int64_t n_rows = step.n_sequences + step.n_drafted;
  if (static_cast<std::size_t>(n_rows) >= steps_.size()) {
    steps_.resize(static_cast<std::size_t>(n_rows) + 1);
  }
  steps_[static_cast<std::size_t>(n_rows)].add(step.step_seconds);
  if (step.n_drafted == 0) {
    n_since_plain_ = 0;
    n_until_trial_ = std::max<std::int64_t>(n_until_trial_ - 1, 0);
    return;
  }
  ++n_since_plain_;
  const std::int64_t depth =
      std::min(max_depth_, (step.n_drafted + step.n_sequences - 1) / step.n_sequences);
  drafts_[static_cast<std::size_t>(depth)].add(step.draft_seconds);
  const double plain_seconds = static_cast<double>(step.n_tokens) * step_seconds(step.n_sequences) /
                               static_cast<double>(step.n_sequences);
  const double gain = plain_seconds - step.draft_seconds - step.step_seconds;
  saved_seconds_ += gain;
  const double beyond = std::max(0.0, gain - debt_);
  debt_ = std::max(0.0, debt_ - gain);
  reading_debt_ = std::max(0.0, reading_debt_ - beyond);
}

bool DepthChooser::is_known(std::int64_t n_rows) const {
  return is_measured(n_rows) && steps_[static_cast<std::size_t>(n_rows)].has_several_samples();
}

bool DepthChooser::is_measured(std::int64_t n_rows) const {
  return static_cast<std::size_t>(n_rows) < steps_.size() &&
         steps_[static_cast<std::size_t>(n_rows)].has_samples();
}

bool DepthChooser::has_drafted() const {
  return std::ranges::any_of(drafts_, &Average::has_samples);
}

double DepthChooser::expected_tokens(std::int64_t depth) const {
  double tokens = 1;
  double all_right = 1;
  for (std::int64_t i = 0; i < depth; ++i) {
    const auto& hits = hits_[static_cast<std::size_t>(i)];
    all_right *= hits.has_samples() ? hits.value() : unknown_hits;
    tokens += all_right;
  }
  return tokens;
}

double DepthChooser::step_seconds(std::int64_t n_rows) const {
  // A step takes no longer than one with more rows, so what was measured of those bounds it: a
  // first plain step that was slow must not make guesses look good.
  std::int64_t below = 0;
  std::int64_t above = 0;
  double at_most = 0;
  for (auto n = static_cast<std::int64_t>(steps_.size()) - 1; n > 0 && below == 0; --n) {
    if (!is_measured(n)) {
      continue;
    }
    const double seconds = steps_[static_cast<std::size_t>(n)].value();
    at_most = above == 0 ? seconds : std::min(at_most, seconds);
    (n >= n_rows ? above : below) = n;
  }
  if (below == 0 || above == n_rows) {
    return at_most;
  }
  const double from = steps_[static_cast<std::size_t>(below)].value();
  const auto beyond = static_cast<double>(n_rows - below);
  if (above == 0) {
    return from * (1 + unknown_row * beyond / static_cast<double>(below));
  }
  const double to = steps_[static_cast<std::size_t>(above)].value();
  return std::min(at_most, from + (to - from) * beyond / static_cast<double>(above - below));
}

double DepthChooser::draft_seconds(std::int64_t depth) const {
  // Drafts take so long per guess; the nearest depth that was measured says how long.
  for (std::int64_t distance = 0; distance <= max_depth_; ++distance) {
    for (const std::int64_t near : {depth - distance, depth + distance}) {
      if (near >= 1 && near <= max_depth_ &&
          drafts_[static_cast<std::size_t>(near)].has_samples()) {
        return drafts_[static_cast<std::size_t>(near)].value() * static_cast<double>(depth) /
               static_cast<double>(near);
      }
    }
  }
  return 0;
}

std::int64_t DepthChooser::best_depth(std::int64_t n_sequences) const {
  // Of what was never tried, little is risked.
  const std::int64_t deepest = has_drafted() ? max_depth_ : 1;
  std::int64_t best = 0;
  double best_speed = 1 / step_seconds(n_sequences);
  for (std::int64_t depth = 1; depth <= deepest; ++depth) {
    const double speed =
        expected_tokens(depth) / (step_seconds(n_sequences * (1 + depth)) + draft_seconds(depth));
    if (speed > best_speed) {
      best = depth;
      best_speed = speed;
    }
  }
  return best;
}

}  // namespace hearth::engine
