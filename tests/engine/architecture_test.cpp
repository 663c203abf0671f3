/// Every architecture against Hugging Face transformers, on every backend that runs here.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "base/format.h"
#include "engine/engine.h"
#include "tests/engine/engine_backend.h"
#include "tests/model/golden_model.h"

namespace hearth::engine {
namespace {

enum class Device { reference, cpu };

std::unique_ptr<backend::Backend> make_backend(Device device) {
  return device == Device::reference ? backend::make_reference_backend() : engine_backend(1);
}

struct Case {
  std::string model;
  Device device;

  [[nodiscard]] std::string name() const {
    return model + (device == Device::reference ? "_reference" : "_cpu");
  }
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name();
}

/// Within 1e-5 of the largest number.
void expect_close(std::span<const float> actual, const std::vector<float>& expected,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  float largest = 0;
  float worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(worst / largest, 1e-5f)
      << what << ": largest difference " << worst << ", largest number " << largest;
}

class Architectures : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    golden_ = model::load_golden_model(GetParam().model);
    auto opened = model::Model::open(golden_.gguf_path);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    model_ = std::move(*opened);
    backend_ = make_backend(GetParam().device);
  }

  model::GoldenModel golden_;
  std::unique_ptr<const model::Model> model_;
  std::unique_ptr<backend::Backend> backend_;
};

TEST_P(Architectures, LogitsOfAPromptAreThoseOfTransformers) {
  const auto n = static_cast<std::int64_t>(golden_.prompt.size());
  auto runner = Runner::create(
      *model_, *backend_,
      {.kv_dtype = DType::f32, .n_kv_blocks = 8, .max_rows = n, .max_logit_rows = n});
  ASSERT_TRUE(runner.has_value()) << runner.error().message;
  StepBlock step;
  std::vector<std::int32_t> table{5, 2};  // any blocks will do
  const auto slot = step.add_sequence(table, 0);
  for (std::int64_t position = 0; position < n; ++position) {
    step.add_row(slot, {.token = golden_.prompt[static_cast<std::size_t>(position)],
                        .position = position,
                        .wants_logits = true});
  }
  const auto logits = (*runner)->run(step.view());
  ASSERT_TRUE(logits.has_value()) << logits.error().message;
  expect_close(*logits, golden_.logits, "logits");
}

TEST_P(Architectures, GreedyTokensAreThoseOfTransformers) {
  auto engine =
      Engine::create(*model_, *backend_, {.context = 96, .max_rows = 7, .kv_dtype = DType::f32});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  auto stream = (*engine)->submit({.prompt = golden_.prompt,
                                   .sampling = {.temperature = 0},
                                   .max_tokens = static_cast<std::int64_t>(golden_.greedy.size()),
                                   .ignore_end_of_generation = true});
  ASSERT_TRUE(stream.has_value()) << stream.error().message;
  std::vector<TokenId> tokens;
  while (true) {
    const auto token = stream->next();
    ASSERT_TRUE(token.has_value()) << token.error().message;
    if (!token->has_value()) {
      break;
    }
    tokens.push_back(**token);
  }
  EXPECT_EQ(tokens, golden_.greedy);
  EXPECT_EQ(stream->finish_reason(), FinishReason::max_tokens);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& name : model::golden_model_names()) {
    cases.push_back({name, Device::reference});
    cases.push_back({name, Device::cpu});
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, Architectures, testing::ValuesIn(all_cases()), case_name);

/// What layer `layer` hands to the next: the input of the next one's first norm.
std::optional<graph::ValueId> output_of(const graph::Graph& graph,
                                        const graph::WeightTable& weights, std::size_t layer) {
  const auto name = format("blk.{}.attn_norm.weight", layer + 1);
  for (const auto& node : graph.nodes) {
    const auto* norm = std::get_if<graph::RmsNorm>(&node.op);
    if (norm != nullptr && weights[index(norm->weight)].name == name) {
      return node.inputs.front();
    }
  }
  return std::nullopt;
}

class HiddenStates : public testing::TestWithParam<std::string> {};

/// The reference computes each of them as if it were the logits.
TEST_P(HiddenStates, BehindEachLayerAreThoseOfTransformers) {
  const auto golden = model::load_golden_model(GetParam());
  const auto model = *model::Model::open(golden.gguf_path);
  const auto backend = backend::make_reference_backend();
  const auto n = static_cast<std::int64_t>(golden.prompt.size());
  const graph::StateCacheDesc states{1, model->state_layers()};
  const graph::KvCacheDesc kv{DType::f32, 2, model->kv_layers()};
  StepBlock step;
  const std::vector<std::int32_t> table{1, 0};
  const auto slot = step.add_sequence(table, 0);
  for (std::int64_t position = 0; position < n; ++position) {
    step.add_row(
        slot, {.token = golden.prompt[static_cast<std::size_t>(position)], .position = position});
  }
  for (std::size_t layer = 0; layer < golden.hidden.size(); ++layer) {
    auto graph = *model->record({n, 1});
    const auto output = output_of(graph, model->weights(), layer);
    ASSERT_TRUE(output.has_value()) << "layer " << layer;
    graph.result = *output;
    const auto session = *backend->open(model->weights(), {kv, states, {}});
    const auto executable =
        *session->compile(plan::make_plan(graph, model->weights(), backend->plan_options()));
    const auto actual = *executable->run(step.view());
    expect_close(actual, golden.hidden[layer], format("layer {}", layer));
  }
}

std::vector<std::string> models_with_hidden_states() {
  auto names = model::golden_model_names();
  std::erase_if(names,
                [](const auto& name) { return model::load_golden_model(name).hidden.empty(); });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, HiddenStates, testing::ValuesIn(models_with_hidden_states()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ArchitectureList, EveryArchitectureHasGoldenData) {
  std::set<std::string> covered;
  for (const auto& name : model::golden_model_names()) {
    covered.insert(name.substr(0, name.find('-')));
  }
  for (const auto& entry : model::all_architectures()) {
    EXPECT_TRUE(covered.contains(std::string(entry.name))) << entry.name;
  }
}

}  // namespace
}  // namespace hearth::engine
