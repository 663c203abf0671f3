#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/result.h"
#include "model/synth/mixtures.h"
#include "model/synth/shapes.h"

namespace hearth::model {

/// What was written.
struct SynthReport {
  std::int64_t n_weights = 0;
  std::int64_t weight_bytes = 0;
};

/// Called after each piece with the bytes of weights so far and in all; false stops the writing.
using SynthProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Writes a model of random weights that every GGUF reader takes, with a tokenizer and a chat
/// template; the bytes are a function of shape, mixture and seed. A row of n weights has a standard
/// deviation of about 1 / sqrt(n) and norms are 1, so that activations are of a real model's size.
/// Replaces what is at `path`.
/// Errors: io; cancelled by `progress`. No partial file is left behind.
Result<SynthReport> write_synthetic_model(const std::filesystem::path& path,
                                          const ModelShape& shape, const Mixture& mixture,
                                          std::uint64_t seed, const SynthProgress& progress);

}  // namespace hearth::model
