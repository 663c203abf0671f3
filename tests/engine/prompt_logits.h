#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "engine/runner.h"
#include "engine/step_block.h"
#include "model/model.h"
#include "tests/engine/engine_backend.h"

namespace hearth::engine {

/// Logits of every position of the prompt.
inline std::vector<float> logits_of(const std::filesystem::path& path,
                                    const std::vector<TokenId>& prompt) {
  const auto model = model::Model::open(path);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return {};
  }
  const auto backend = engine_backend(1);
  const auto n = static_cast<std::int64_t>(prompt.size());
  auto runner = Runner::create(
      **model, *backend,
      {.kv_dtype = DType::f32, .n_kv_blocks = 8, .max_rows = n, .max_logit_rows = n});
  if (!runner) {
    ADD_FAILURE() << runner.error().message;
    return {};
  }
  StepBlock step;
  std::vector<std::int32_t> table{0, 1};
  const auto slot = step.add_sequence(table, 0);
  for (std::int64_t position = 0; position < n; ++position) {
    step.add_row(slot, {.token = prompt[static_cast<std::size_t>(position)],
                        .position = position,
                        .wants_logits = true});
  }
  const auto logits = (*runner)->run(step.view());
  EXPECT_TRUE(logits) << logits.error().message;
  return {logits->begin(), logits->end()};
}

}  // namespace hearth::engine
