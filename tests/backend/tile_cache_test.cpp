/// The file of tiles: that it is used, gives the same bits, and is not trusted.

#include "backend/cpu/tile_cache.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "quant/registry.h"
#include "tests/backend/step_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend {
namespace {

namespace fs = std::filesystem;
using graph::Family;
using graph::TinyModel;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model whose "file" is a few bytes beside the cache.
class TileCacheTest : public testing::Test {
 protected:
  TileCacheTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_file(model_file_, "the model");
  }
  ~TileCacheTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::unique_ptr<Backend> backend(const TinyModel& model) const {
    return backend(model.weights());
  }
  [[nodiscard]] std::unique_ptr<Backend> backend(const graph::WeightTable& weights) const {
    return make_cpu_backend({.n_threads = n_test_threads,
                             .layout = WeightLayout::tiles,
                             .tile_cache = TileCacheOptions{.file = cache_file_,
                                                            .model_files = {model_file_},
                                                            .weights = &weights}})
        .value();
  }

  struct Loaded {
    std::string description;
    std::int64_t copied_bytes;
  };
  /// What a session says once it is ready to run.
  Loaded load(const TinyModel& model) const { return load(*backend(model), model); }
  static Loaded load(Backend& backend, const TinyModel& model) {
    const auto session =
        backend.open(model.weights(), {model.kv_cache(DType::f16, 2), model.states(1), {}}).value();
    const auto plan =
        plan::make_plan(model.record({4, 1}), model.weights(), backend.plan_options());
    EXPECT_TRUE(session->compile(plan).has_value());
    return {session->description(), session->memory().weight_bytes};
  }

  /// The file that is there is refused for a reason, written anew, and then used.
  void expect_refused(const TinyModel& model, const std::string& why) const {
    const auto loaded = load(model);
    EXPECT_THAT(loaded.description, AllOf(HasSubstr("refused"), HasSubstr(why),
                                          HasSubstr("tiles written to " + cache_file_.string())));
    EXPECT_GT(loaded.copied_bytes, 0);
    EXPECT_THAT(load(model).description, HasSubstr("tiles mapped from " + cache_file_.string()));
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) /
      (std::string("tile_cache_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  const fs::path model_file_ = folder_ / "model";
  const fs::path cache_file_ = folder_ / "made" / "tiles";
  const TinyModel model_{Family::llama, {}, {quant::find("Q4_K")->dtype, DType::f16}};
};

TEST_F(TileCacheTest, IsWrittenAtTheFirstStartAndMappedAtTheNext) {
  const auto first = load(model_);
  EXPECT_THAT(first.description, AllOf(HasSubstr("tiles written to " + cache_file_.string()),
                                       Not(HasSubstr("refused"))));
  EXPECT_GT(first.copied_bytes, 0);
  const auto second = load(model_);
  EXPECT_THAT(second.description, AllOf(HasSubstr("tiles mapped from " + cache_file_.string()),
                                        Not(HasSubstr("written"))));
  EXPECT_EQ(second.copied_bytes, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(cache_file_.parent_path()), {}), 1);
}

TEST_F(TileCacheTest, GivesTheSameBits) {
  for (const Family family : {Family::llama, Family::hybrid}) {
    for (const char* type : {"Q4_K", "Q6_K", "Q8_0", "MXFP4"}) {
      const TinyModel model(family, {.vocab = 41}, {quant::find(type)->dtype});
      const std::vector<Tokens> sequences{random_tokens(9, 41, 1)};
      const auto expected = reference_logits(model, DType::f16, sequences);
      expect_varied(expected);
      fs::remove(cache_file_);
      for (const bool is_mapped : {false, true}) {
        EXPECT_EQ(first_difference(expected, run_schedule(*backend(model), model, DType::f16,
                                                          sequences, {.chunk = 4})),
                  "")
            << type << (is_mapped ? ", mapped" : ", made");
      }
      EXPECT_EQ(load(model).copied_bytes, 0);
    }
  }
}

TEST_F(TileCacheTest, IsRefusedWhenTheModelsFileHasChanged) {
  load(model_);
  write_file(model_file_, "the Model");  // of the same size
  expect_refused(model_, "have changed since");
  write_file(model_file_, "the Model and more");
  expect_refused(model_, "have changed since");
  fs::last_write_time(model_file_, fs::last_write_time(model_file_) + std::chrono::hours(1));
  expect_refused(model_, "have changed since");
}

TEST_F(TileCacheTest, IsRefusedWhenItIsDamaged) {
  load(model_);
  const std::string good = read_file(cache_file_);
  const auto damage = [&](std::size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  for (const auto& [bytes, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "bytes of the header: expected 48, found 0"},
           {good.substr(0, 47), "bytes of the header: expected 48, found 47"},
           {good.substr(0, good.size() - 1), "bytes of the file"},
           {good + "more", "bytes of the file"},
           {damage(0), "no file of tiles"},
           {damage(8), "version: expected 1, found 0"},
           {damage(15), "bytes of the table"},
           {damage(16), "hash of header and table"},
           {damage(24), "hash of header and table"},
           {damage(50), "hash of header and table"},
           {damage(4096), "tiles of tensor"}}) {
    write_file(cache_file_, bytes);
    expect_refused(model_, why);
  }
}

TEST_F(TileCacheTest, IsRefusedWhenItsTilesAreOfOtherWeights) {
  load(model_);
  TinyModel other{Family::llama, {}, {quant::find("Q4_K")->dtype, DType::f16}};
  other.storage().bytes(other.down_of_last_layer()).back() ^= std::byte{1};
  expect_refused(other, "differ from the model's");
}

TEST_F(TileCacheTest, LeavesOutMatricesThatTheModelHasNot) {
  load(model_);
  const TinyModel larger{Family::llama, {.n_layers = 3}, {quant::find("Q4_K")->dtype}};
  const auto loaded = load(larger);  // those of F16 have another type now
  EXPECT_GT(loaded.copied_bytes, 0);
  EXPECT_THAT(loaded.description, HasSubstr("written"));
  EXPECT_EQ(load(larger).copied_bytes, 0);
}

TEST_F(TileCacheTest, IsNotWrittenAgainForRowsThatAreMadeAtEveryStart) {
  const TinyModel model{Family::llama, {}, {DType::f16}};
  graph::WeightTable weights = model.weights();
  auto& table = weights[graph::index(model.token_embed())];
  table.origin.make = [data = table.tensor.data]() -> Result<Buffer> {
    Buffer rows(std::ssize(data));
    std::ranges::copy(data, rows.bytes().begin());
    return rows;
  };
  table.tensor.data = {};
  const auto start = [&] {
    const auto made = backend(weights);
    const auto session =
        made->open(weights, {model.kv_cache(DType::f16, 2), model.states(1), {}}).value();
    const auto plan = plan::make_plan(model.record({4, 1}), weights, made->plan_options());
    EXPECT_TRUE(session->compile(plan).has_value());
    EXPECT_GT(session->memory().weight_bytes, 0);
    return session->description();
  };
  EXPECT_THAT(start(), HasSubstr("tiles written"));
  EXPECT_THAT(start(), AllOf(HasSubstr("tiles mapped"), Not(HasSubstr("written"))));
}

TEST_F(TileCacheTest, IsNotForAnotherModelOfTheSameBackend) {
  const auto shared = backend(model_);
  load(*shared, model_);
  const std::string before = read_file(cache_file_);
  const TinyModel draft{Family::llama, {.n_layers = 1}, {DType::f16}};
  EXPECT_THAT(load(*shared, draft).description, Not(HasSubstr("tiles written")));
  EXPECT_EQ(read_file(cache_file_), before);
}

TEST_F(TileCacheTest, SaysWhyItIsNotWritten) {
  write_file(folder_ / "made", "a file where the folder should be");
  const auto loaded = load(model_);
  EXPECT_THAT(loaded.description, HasSubstr("cache of tiles not written"));
  EXPECT_GT(loaded.copied_bytes, 0);
  fs::remove(model_file_);
  EXPECT_THAT(load(model_).description, HasSubstr("cannot read its size"));
}

}  // namespace
}  // namespace hearth::backend
