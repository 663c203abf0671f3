#include "engine/selftest/selftest.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/engine_backend.h"

namespace hearth::engine {
namespace {

using testing::HasSubstr;
using enum ProbeOutcome::Kind;

const ProbeKind& probe(const std::string& name) {
  static const auto all = all_probes();
  return *std::ranges::find(all, name, &ProbeKind::name);
}

TEST(SelfTest, FindsTheReferenceBitsForEveryOperation) {
  const auto backend = engine_backend(2);
  const auto probes = all_probes();
#if defined(HEARTH_SANITIZED)
  const std::size_t step = 7;  // the accesses of all are those of tests/backend
#else
  const std::size_t step = 1;
#endif
  for (std::size_t i = 0; i < probes.size(); i += step) {
    const ProbeKind& kind = probes[i];
    const auto outcome = run_probe(kind, *backend, /*timed=*/false);
    EXPECT_EQ(outcome.kind, same_bits) << kind.name << ": " << outcome.message;
    EXPECT_EQ(outcome.largest_error, 0) << kind.name;
  }
}

TEST(SelfTest, HasEveryOperationOnceAndSaysWhatRan) {
  std::set<std::string> names;
  for (const auto& kind : all_probes()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
  }
  const auto outcome = run_probe(
      probe("product Q4_K"),
      *backend::make_gpu_backend(backend::gpu::emulator::open_emulator_device({})), false);
  EXPECT_EQ(outcome.kind, same_bits) << outcome.message;
  // Prompts, several sequences, guesses, single rows.
  for (const auto* kernel :
       {"tile_product_q4_k", "column_projection", "strip_projection", "strip_row"}) {
    EXPECT_THAT(outcome.kernels, testing::Contains(kernel));
  }
}

/// The CPU's results with the last bit of every number turned.
class SlightlyWrong final : public backend::Executable {
 public:
  explicit SlightlyWrong(std::unique_ptr<backend::Executable> right) : right_(std::move(right)) {}
  Result<std::span<const float>> run(const graph::StepView& step) override {
    HEARTH_ASSIGN(const auto values, right_->run(step));
    values_.clear();
    for (const float value : values) {
      values_.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1));
    }
    return std::span<const float>(values_);
  }
  [[nodiscard]] std::vector<std::string_view> kernels() const override { return right_->kernels(); }

 private:
  std::unique_ptr<backend::Executable> right_;
  std::vector<float> values_;
};

class WrongSession final : public backend::Session {
 public:
  explicit WrongSession(std::unique_ptr<backend::Session> right) : right_(std::move(right)) {}
  Result<std::unique_ptr<backend::Executable>> compile(const plan::Plan& plan) override {
    HEARTH_ASSIGN(auto right, right_->compile(plan));
    return std::make_unique<SlightlyWrong>(std::move(right));
  }
  void copy_state(std::int64_t from, std::int64_t to) override { right_->copy_state(from, to); }
  [[nodiscard]] backend::MemoryUse memory() const override { return right_->memory(); }
  [[nodiscard]] std::string description() const override { return right_->description(); }

 private:
  std::unique_ptr<backend::Session> right_;
};

class WrongBackend final : public backend::Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "wrong"; }
  [[nodiscard]] std::string description() const override { return "wrong"; }
  [[nodiscard]] plan::Options plan_options() const override { return right_->plan_options(); }
  [[nodiscard]] std::int64_t free_memory() const override { return right_->free_memory(); }
  [[nodiscard]] Result<void> check(const graph::WeightTable& weights) const override {
    return right_->check(weights);
  }
  Result<std::unique_ptr<backend::Session>> open(const graph::WeightTable& weights,
                                                 const graph::CacheDescs& caches) override {
    HEARTH_ASSIGN(auto right, right_->open(weights, caches));
    return std::make_unique<WrongSession>(std::move(right));
  }
  Result<std::unique_ptr<backend::ReadStream>> read_stream() override {
    return right_->read_stream();
  }

 private:
  std::unique_ptr<backend::Backend> right_ = *backend::make_cpu_backend({.n_threads = 1});
};

TEST(SelfTest, FindsOneWrongBit) {
  WrongBackend wrong;
  const auto outcome = run_probe(probe("product Q8_0"), wrong, false);
  EXPECT_EQ(outcome.kind, differs);
  EXPECT_GT(outcome.largest_error, 0);
  EXPECT_LT(outcome.largest_error, 1e-6);
}

TEST(SelfTest, TellsARefusalFromAFault) {
  const auto little = backend::make_gpu_backend(
      backend::gpu::emulator::open_emulator_device({.memory_bytes = 100'000}));
  const auto failed_one = run_probe(probe("product F32"), *little, false);
  EXPECT_EQ(failed_one.kind, failed);
  EXPECT_THAT(failed_one.message, HasSubstr("do not fit"));
  const ProbeKind odd{
      "heads of 24", [](Probe& own) {
        own.set_embedding(DType::f32);
        const std::int64_t layer = own.add_kv_layer(DType::f16, {1, 24});
        const auto weight = own.matrix(DType::f32, 24, own.size().width);
        own.add_layer([=](graph::GraphBuilder& g, graph::ValueId x) {
          const auto q = matmul(g, x, weight);
          return attention(
              g, {.layer = layer, .n_heads = 1, .n_kv_heads = 1, .head_dim = 24, .scale = 1}, q, q,
              q);
        });
      }};
  const auto emulator = backend::make_gpu_backend(backend::gpu::emulator::open_emulator_device({}));
  const auto refused_one = run_probe(odd, *emulator, false);
  EXPECT_EQ(refused_one.kind, refused);
  EXPECT_THAT(refused_one.message, HasSubstr("24"));
}

TEST(SelfTest, MeasuresHowFastAnOperationReads) {
  const auto backend = *backend::make_cpu_backend({.n_threads = 2});
  const auto outcome = run_probe(probe("embedding F32"), *backend, true);
  ASSERT_EQ(outcome.kind, same_bits) << outcome.message;
  EXPECT_GT(outcome.bytes_per_s.value_or(0), 0);
}

}  // namespace
}  // namespace hearth::engine
