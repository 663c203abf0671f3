#include "backend/gpu/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "base/math.h"
#include "quant/registry.h"
#include "tests/backend/gpu/kernels/kernel_runner.h"
#include "tests/backend/gpu/kernels/rope_angles.h"
#include "tests/graph/op_runner.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend::gpu {
namespace {

using graph::Matrix;
using graph::random_matrix;

struct Layer {
  DType type = DType::f16;
  std::int64_t n_heads = 4;
  std::int64_t n_kv_heads = 2;
  std::int64_t head_dim = 32;
  std::int64_t window = 0;
  bool forms_heads = false;  // q is every second head of its value; norms and rotations
};

/// Tokens of two sequences: what is in the cache, and the rows of the step.
struct Lengths {
  std::int32_t first = 0;
  std::int32_t second = 0;
  std::int32_t n_rows = 1;  // of the first sequence; of the second it is one
};

struct Kernels {
  KernelId store, many_rows, shared_rows, scores, parts;
};
#define KERNELS_OF(type)                                                                          \
  {KernelId::attention_store_##type, KernelId::attention_##type, KernelId::attention_rows_##type, \
   KernelId::attention_scores_##type, KernelId::attention_parts_##type}
Kernels kernels_of(DType type) {
  static const std::map<DType, Kernels> all{{DType::f32, KERNELS_OF(f32)},
                                            {DType::f16, KERNELS_OF(f16)},
                                            {DType::bf16, KERNELS_OF(bf16)},
                                            {quant::Q8_0::info.dtype, KERNELS_OF(q8_0)},
                                            {quant::Q4_0::info.dtype, KERNELS_OF(q4_0)}};
  return all.at(type);
}

/// Threadgroups for the keys of a row: the fewer, the more keys and values each takes.
constexpr u32 some_groups[] = {1, 5, 11, 40};

u32 combined_groups(u32 n_heads, u32 head_dim) {
  return n_heads * ((head_dim + ATTENTION_COMBINE_THREADS - 1) / ATTENTION_COMBINE_THREADS);
}

/// Rows with their projections.
struct Batch {
  graph::OwnedStep step;
  Matrix q, k, v;
};

/// A layer with two caches, one for the reference and one for the kernels.
class GpuAttention {
 public:
  GpuAttention(const Layer& layer, const Lengths& lengths)
      : layer_(layer),
        params_{.layer = 0,
                .n_heads = layer.n_heads,
                .n_kv_heads = layer.n_kv_heads,
                .head_dim = layer.head_dim,
                .scale = 0.3f,
                .window = layer.window},
        rope_{.pairing = graph::RopePairing::half_split,
              .head_dim = layer.head_dim,
              .n_rot = layer.head_dim / 2},
        weights_(7),
        table_stride_(std::max(lengths.first + lengths.n_rows, lengths.second + 1) / 16 + 1),
        host_cache_({layer.type, 2 * table_stride_, {{layer.n_kv_heads, layer.head_dim}}}) {
    q_norm_ = {weights_.add_uniform("q_norm", {layer.head_dim}, 0.5f, 1.5f), 1e-5f};
    k_norm_ = {weights_.add_uniform("k_norm", {layer.head_dim}, 0.5f, 1.5f), 1e-6f};
    const auto half = static_cast<std::size_t>(quant::row_bytes(layer.type, 16 * layer.head_dim) *
                                               layer.n_kv_heads * 2 * table_stride_);
    keys_ = Contents(half, std::byte{0xff});  // NaN in every type
    values_ = keys_;
    const Batch context = batch({0, lengths.first}, {0, lengths.second}, 1);
    write_host(context);
    store(context);
    rows_ = batch({lengths.first, lengths.n_rows}, {lengths.second, 1}, 2);
  }

  /// Expects the bits of the reference from every way to launch.
  void expect_reference() {
    const Matrix expected = reference();
    const auto group = layer_.n_heads / layer_.n_kv_heads;
    const bool can_be_alone =
        std::ranges::count(rows_.step.sequences, 0) == 1 && group <= ATTENTION_MAX_HEADS;
    if (can_be_alone) {
      for (const u32 n_groups : some_groups) {
        expect_bits(few_rows(contents(rows_.q.data), 1, n_groups).y, expected.data);
      }
    }
    const FewRows alone = can_be_alone ? few_rows(contents(rows_.q.data), 1, 2) : FewRows{};
    const Contents q = store(rows_);
    if (can_be_alone) {
      EXPECT_EQ(alone.keys, keys_);
      EXPECT_EQ(alone.values, values_);
    }
    for (const u32 n_groups : some_groups) {
      expect_bits(few_rows(q, 0, n_groups).y, expected.data);
    }
    for (const std::uint32_t n_threads : {128u, 256u}) {
      expect_bits(many_rows(q, n_threads), expected.data);
    }
    expect_bits(shared_rows(q), expected.data);
  }

  /// What the kernels give for the last row of the step.
  std::vector<float> last_row() {
    auto y = values<float>(many_rows(store(rows_), 128));
    y.resize(rows_.step.positions.size() * q_floats());
    return {y.end() - static_cast<std::ptrdiff_t>(q_floats()), y.end()};
  }

  /// Only the rows of the step from `first` on.
  void drop_rows_before(std::int64_t first) {
    const auto drop = [first](auto& all, std::int64_t each) {
      all.erase(all.begin(), all.begin() + first * each);
    };
    drop(rows_.step.tokens, 1);
    drop(rows_.step.positions, 1);
    drop(rows_.step.sequences, 1);
    for (Matrix* x : {&rows_.q, &rows_.k, &rows_.v}) {
      drop(x->data, x->features);
      x->rows -= first;
    }
  }

 private:
  struct Run {
    std::int32_t first;
    std::int32_t n;
  };

  [[nodiscard]] std::size_t q_floats() const {
    return static_cast<std::size_t>(layer_.n_heads * layer_.head_dim);
  }
  [[nodiscard]] Batch batch(Run of_first, Run of_second, std::uint32_t seed) const {
    graph::OwnedStep step(0);
    step.table_stride = table_stride_;
    step.block_tables.resize(2 * static_cast<std::size_t>(table_stride_));
    std::iota(step.block_tables.rbegin(), step.block_tables.rend(), 0);
    for (const auto& [run, sequence] : {std::pair(of_first, 0), {of_second, 1}}) {
      for (std::int32_t i = 0; i < run.n; ++i) {
        step.tokens.push_back(TokenId{0});
        step.positions.push_back(run.first + i);
        step.sequences.push_back(sequence);
      }
    }
    const auto rows = static_cast<std::int64_t>(step.positions.size());
    const std::int64_t q_features = layer_.n_heads * layer_.head_dim * (layer_.forms_heads ? 2 : 1);
    const std::int64_t kv_features = layer_.n_kv_heads * layer_.head_dim;
    Batch result{step, random_matrix(rows, q_features, 10 * seed),
                 random_matrix(rows, kv_features, 10 * seed + 1),
                 random_matrix(rows, kv_features, 10 * seed + 2)};
    if (rows > 0) {
      // Groups of nothing, of two largest magnitudes, and with values that no code can be.
      float* v = result.v.data.data() + (rows - 1) * kv_features;
      std::fill_n(v, 16, 0.0f);
      v[3] = 0x1p-121f;
      float* k = result.k.data.data() + (rows - 1) * kv_features;
      k[5] = -1.0f;
      k[9] = 1.0f;
      result.v.data[static_cast<std::size_t>(kv_features - 1)] = NAN;
      result.v.data[static_cast<std::size_t>(kv_features - 5)] = INFINITY;
    }
    return result;
  }

  /// Heads as attention takes them, by reference ops.
  [[nodiscard]] Matrix formed(const Matrix& x, const graph::RmsNorm& norm,
                              const graph::OwnedStep& step) const {
    if (!layer_.forms_heads) {
      return x;
    }
    const auto normed = graph::run_op(norm, weights_.table(), {x}).value();
    return graph::run_op(graph::Rope{rope_}, {}, {normed}, step).value();
  }

  void write_host(const Batch& rows) {
    const Matrix k = formed(rows.k, k_norm_, rows.step);
    const graph::StepView step = rows.step.view();
    for (std::int64_t row = 0; row < step.n_rows(); ++row) {
      for (std::int64_t head = 0; head < layer_.n_kv_heads; ++head) {
        const std::int64_t at = row * k.features + head * layer_.head_dim;
        host_cache_.write(0, step.block_table(row), step.positions[static_cast<std::size_t>(row)],
                          head, k.data.data() + at, rows.v.data.data() + at);
      }
    }
  }

  Matrix reference() {
    Matrix q = rows_.q;
    if (layer_.forms_heads) {
      const graph::ColumnPattern columns{2 * layer_.head_dim, layer_.head_dim, layer_.head_dim};
      q = graph::run_op(graph::Columns{columns}, {}, {q}).value();
    }
    return graph::run_op(
               graph::Attention{params_}, {},
               {formed(q, q_norm_, rows_.step), formed(rows_.k, k_norm_, rows_.step), rows_.v},
               rows_.step, host_cache_)
        .value();
  }

  [[nodiscard]] AttentionStoreParams store_params() const {
    const u32 is_formed = layer_.forms_heads ? 1 : 0;
    const auto head_dim = static_cast<u32>(layer_.head_dim);
    return {.n_heads = static_cast<u32>(layer_.n_heads),
            .n_kv_heads = static_cast<u32>(layer_.n_kv_heads),
            .head_dim = head_dim,
            .table_stride = static_cast<u32>(table_stride_),
            .q_features = static_cast<u32>(layer_.n_heads) * head_dim << is_formed,
            .q_period = head_dim << is_formed,
            .q_start = head_dim * is_formed,
            .has_q_norm = is_formed,
            .has_k_norm = is_formed,
            .q_eps = q_norm_.eps,
            .k_eps = k_norm_.eps,
            .rope = is_formed != 0 ? rope_pairs(rope_) : RopePairs{}};
  }

  /// Buffers up to the block tables; one row more than there is is masked.
  [[nodiscard]] std::vector<Contents> head_buffers(const Batch& rows, const Contents& q) {
    const bool is_formed = layer_.forms_heads;
    return {counts(static_cast<u32>(rows.step.positions.size())),
            q,
            contents(rows.k.data),
            contents(rows.v.data),
            is_formed ? weights_.bytes(q_norm_.weight) : no_buffer(),
            is_formed ? weights_.bytes(k_norm_.weight) : no_buffer(),
            is_formed ? contents(rope_angles(rope_, rows.step.positions)) : no_buffer(),
            contents(rows.step.positions),
            contents(rows.step.sequences),
            contents(rows.step.block_tables)};
  }

  /// The queries made ready; keys and values go to the cache.
  Contents store(const Batch& rows) {
    const auto n_rows = static_cast<u32>(rows.step.positions.size());
    const AttentionStoreParams params = store_params();
    std::vector<Contents> buffers = head_buffers(rows, contents(rows.q.data));
    buffers.insert(buffers.end(), {poisoned((n_rows + 1) * q_floats()), keys_, values_});
    auto results = run_everywhere(call(kernels_of(layer_.type).store, std::move(buffers), params,
                                       {(params.n_heads + params.n_kv_heads + 3) / 4, n_rows + 1},
                                       {ATTENTION_STORE_THREADS}));
    keys_ = results[11];
    values_ = results[12];
    return results[10];
  }

  [[nodiscard]] AttentionParams attention_params() const {
    return {.n_heads = static_cast<u32>(layer_.n_heads),
            .n_kv_heads = static_cast<u32>(layer_.n_kv_heads),
            .head_dim = static_cast<u32>(layer_.head_dim),
            .table_stride = static_cast<u32>(table_stride_),
            .window = static_cast<u32>(layer_.window),
            .scale = params_.scale,
            .n_parts = static_cast<u32>(table_stride_ * 16 / ATTENTION_PART_KEYS + 1)};
  }

  Contents many_rows(const Contents& q, std::uint32_t n_threads) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    return run_everywhere(call(kernels_of(layer_.type).many_rows,
                               {counts(n_rows), q, contents(rows_.step.positions),
                                contents(rows_.step.sequences), contents(rows_.step.block_tables),
                                keys_, values_, poisoned((n_rows + 1) * q_floats())},
                               attention_params(), {1, head_runs(n_threads / 32), n_rows + 1},
                               {n_threads}))
        .back();
  }

  Contents shared_rows(const Contents& q) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    const auto n_kv_heads = static_cast<u32>(layer_.n_kv_heads);
    const auto group = static_cast<u32>(layer_.n_heads / layer_.n_kv_heads);
    const u32 n_groups = n_rows * group / ATTENTION_ROWS_QUERIES + 2;  // one has nothing to do
    return run_everywhere(
               call(kernels_of(layer_.type).shared_rows,
                    {counts(n_rows), q, contents(rows_.step.positions),
                     contents(rows_.step.sequences), contents(rows_.step.block_tables), keys_,
                     values_, poisoned(std::size_t{n_groups} * n_kv_heads * ATTENTION_ROWS_SCORES),
                     poisoned((n_rows + 1) * q_floats())},
                    attention_params(), {n_kv_heads, n_groups}, {ATTENTION_ROWS_THREADS}))
        .back();
  }

  struct FewRows {
    Contents y, keys, values;
  };

  /// Of rows that are each alone in their step, which keys and values are stored in copies of, or
  /// of queries that are ready; by so many threadgroups for the keys of a row.
  FewRows few_rows(const Contents& q, u32 is_alone, u32 n_groups) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    AttentionScoresParams params{store_params(), attention_params()};
    params.attention.is_alone = is_alone;
    params.attention.groups_at_once = n_groups - 1;
    const Dim3 grid{head_runs(ATTENTION_MAX_HEADS), n_rows + 1, n_groups};
    const std::size_t n_records =
        static_cast<std::size_t>(layer_.n_heads) * params.attention.n_parts * (n_rows + 1);
    std::vector<Contents> buffers = head_buffers(rows_, q);
    buffers.insert(buffers.end(), {keys_, values_, poisoned(n_records * ATTENTION_PART_KEYS)});
    const auto scored = run_everywhere(call(kernels_of(layer_.type).scores, std::move(buffers),
                                            params, grid, {ATTENTION_SCORE_THREADS}));
    const auto in_parts = run_everywhere(
        call(kernels_of(layer_.type).parts,
             {counts(n_rows), scored[12], contents(rows_.step.positions),
              contents(rows_.step.sequences), contents(rows_.step.block_tables), scored[11],
              poisoned(n_records * static_cast<std::size_t>(layer_.head_dim + 2))},
             params.attention, grid, {ATTENTION_PART_THREADS}));
    const auto combined = run_everywhere(
        call(KernelId::attention_combine_f32,
             {counts(n_rows), in_parts.back(), contents(rows_.step.positions), no_buffer(),
              poisoned((n_rows + 1) * q_floats())},
             params.attention,
             {combined_groups(params.heads.n_heads, params.heads.head_dim), n_rows + 1},
             {ATTENTION_COMBINE_THREADS}));
    return {combined.back(), scored[10], scored[11]};
  }

  [[nodiscard]] u32 head_runs(u32 served) const {
    const auto group = static_cast<u32>(layer_.n_heads / layer_.n_kv_heads);
    return static_cast<u32>(layer_.n_kv_heads) * ((group + served - 1) / served);
  }

  Layer layer_;
  graph::AttentionParams params_;
  graph::RopeParams rope_;
  graph::RandomWeights weights_;
  graph::RmsNorm q_norm_, k_norm_;
  std::int64_t table_stride_;
  graph::HostKvCache host_cache_;
  Contents keys_, values_;
  Batch rows_{graph::OwnedStep(0), {}, {}, {}};
};

TEST(GpuAttention, GivesTheBitsOfTheReferenceForEveryTypeOfCache) {
  for (const DType type : shapes({DType::f32, DType::bf16, quant::Q8_0::info.dtype,
                                  quant::Q4_0::info.dtype, DType::f16})) {
    SCOPED_TRACE(quant::name(type));
    GpuAttention({.type = type}, {.first = 0, .second = 20, .n_rows = 3}).expect_reference();
    GpuAttention({.type = type, .forms_heads = true}, {.first = 30, .second = 3})
        .expect_reference();
  }
}

TEST(GpuAttention, GivesTheBitsOfTheReferenceForEveryLengthOfHead) {
  for (const std::int64_t head_dim : shapes<std::int64_t>({16, 80, 256, 144})) {
    SCOPED_TRACE(head_dim);
    GpuAttention({.n_heads = 2, .n_kv_heads = 1, .head_dim = head_dim, .forms_heads = true},
                 {.first = 17, .second = 2})
        .expect_reference();
  }
}

TEST(GpuAttention, ServesGroupsThatAreNoWholeTiles) {
  for (const std::int64_t n_heads : shapes<std::int64_t>({1, 5, 9})) {
    SCOPED_TRACE(n_heads);
    GpuAttention({.n_heads = 2 * n_heads, .n_kv_heads = 2}, {.first = 10, .second = 2})
        .expect_reference();
  }
}

TEST(GpuAttention, FoldsPartsInTheOrderOfTheReference) {
  for (const std::int64_t window : shapes<std::int64_t>({5, 400, 0})) {
    SCOPED_TRACE(window);
    GpuAttention({.n_heads = 2, .n_kv_heads = 1, .head_dim = 16, .window = window},
                 {.first = 1040, .second = 512, .n_rows = 2})
        .expect_reference();
  }
}

TEST(GpuAttention, CutsKeysAndValuesByHowManyThereAre) {
  for (const DType type : shapes({quant::Q8_0::info.dtype, DType::f16})) {
    SCOPED_TRACE(quant::name(type));
    GpuAttention({.type = type, .n_heads = 5, .n_kv_heads = 1, .head_dim = 256},
                 {.first = 700, .second = 520})
        .expect_reference();
  }
}

// Threadgroups that begin and end within a sequence, with rows of both, and with keys that some of
// their queries see.
TEST(GpuAttention, GivesTheBitsOfTheReferenceForPrompts) {
  for (const std::int64_t n_heads : shapes<std::int64_t>({8, 1, 3})) {
    SCOPED_TRACE(n_heads);
    GpuAttention({.n_heads = n_heads, .n_kv_heads = 1, .head_dim = 48, .forms_heads = true},
                 {.first = 500, .second = 7, .n_rows = 45})
        .expect_reference();
  }
  for (const std::int64_t window : shapes<std::int64_t>({20, 600})) {
    SCOPED_TRACE(window);
    GpuAttention({.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .window = window},
                 {.first = 1010, .second = 30, .n_rows = 21})
        .expect_reference();
  }
}

// Rows that check guesses see different lengths; each has the bits that it has alone.
TEST(GpuAttention, GivesARowTheSameBitsAloneAndInAWindowOfGuesses) {
  GpuAttention together({}, {.first = 40, .second = 3, .n_rows = 3});
  const auto expected = together.last_row();
  together.drop_rows_before(3);
  EXPECT_EQ(together.last_row(), expected);
}

// The fold of graph/ops/attention.cpp over more parts than a threadgroup has threads, whose maxima
// rise and fall.
TEST(GpuAttention, CombinesMorePartsThanThreads) {
  constexpr u32 n_parts = 2 * ATTENTION_COMBINE_THREADS + 40;
  constexpr u32 n_heads = 2;
  constexpr std::size_t head_dim = 80;
  constexpr std::size_t record = head_dim + 2;
  const std::vector<float> partials = random_matrix(n_heads * n_parts, record, 3).data;
  std::vector<float> expected;
  for (std::size_t head = 0; head < n_heads; ++head) {
    const float* part = partials.data() + head * n_parts * record;
    std::vector<float> total(part, part + record);
    for (std::size_t i = 1; i < n_parts; ++i) {
      part += record;
      const float maximum = std::max(total[head_dim], part[head_dim]);
      const float keep = canonical_exp(total[head_dim] - maximum);
      const float take = canonical_exp(part[head_dim] - maximum);
      total[head_dim] = maximum;
      for (std::size_t d = 0; d < record; ++d) {
        if (d != head_dim) {
          total[d] = std::fma(take, part[d], keep * total[d]);
        }
      }
    }
    for (std::size_t d = 0; d < head_dim; ++d) {
      expected.push_back(total[d] / total[head_dim + 1]);
    }
  }
  const AttentionParams params{
      .n_heads = n_heads, .n_kv_heads = 1, .head_dim = head_dim, .n_parts = n_parts};
  const auto results = run_everywhere(
      call(KernelId::attention_combine_f32,
           {counts(1), contents(partials),
            contents(std::vector<i32>{static_cast<i32>(n_parts * ATTENTION_PART_KEYS) - 1}),
            no_buffer(), poisoned(2 * n_heads * head_dim)},
           params, {combined_groups(n_heads, head_dim), 2}, {ATTENTION_COMBINE_THREADS}));
  expect_bits(results.back(), expected);
}

}  // namespace
}  // namespace hearth::backend::gpu
