#include "backend/gpu/kernels/attention.h"

#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

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
  KernelId store, attend, attend_rows;
};
#define KERNELS_OF(type) \
  {KernelId::attention_store_##type, KernelId::attention_##type, KernelId::attention_rows_##type}
Kernels kernels_of(DType type) {
  static const std::map<DType, Kernels> all{{DType::f32, KERNELS_OF(f32)},
                                            {DType::f16, KERNELS_OF(f16)},
                                            {DType::bf16, KERNELS_OF(bf16)},
                                            {quant::Q8_0::info.dtype, KERNELS_OF(q8_0)},
                                            {quant::Q4_0::info.dtype, KERNELS_OF(q4_0)}};
  return all.at(type);
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
    const Contents q = store(rows_);
    const auto group = layer_.n_heads / layer_.n_kv_heads;
    for (const std::uint32_t n_threads : {128u, 256u}) {
      const auto heads =
          static_cast<u32>(layer_.n_kv_heads * ((group + n_threads / 32 - 1) / (n_threads / 32)));
      expect_bits(attend(q, 0, heads, n_threads), expected.data);
      expect_bits(combine(attend(q, n_parts(), heads, n_threads)), expected.data);
    }
    expect_bits(attend_rows(q), expected.data);
  }

  /// What the kernels give for the last row of the step.
  std::vector<float> last_row() {
    auto y = values<float>(attend(store(rows_), 0, static_cast<u32>(layer_.n_kv_heads), 128));
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
  [[nodiscard]] std::uint32_t n_parts() const {
    return static_cast<u32>(table_stride_ * 16 / ATTENTION_PART_KEYS + 1);
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

  /// The queries made ready; keys and values go to the cache. One row is masked.
  Contents store(const Batch& rows) {
    const auto n_rows = static_cast<u32>(rows.step.positions.size());
    const u32 is_formed = layer_.forms_heads ? 1 : 0;
    const auto head_dim = static_cast<u32>(layer_.head_dim);
    AttentionStoreParams params{.n_heads = static_cast<u32>(layer_.n_heads),
                                .n_kv_heads = static_cast<u32>(layer_.n_kv_heads),
                                .head_dim = head_dim,
                                .table_stride = static_cast<u32>(table_stride_),
                                .q_features = static_cast<u32>(rows.q.features),
                                .q_period = head_dim << is_formed,
                                .q_start = head_dim * is_formed,
                                .has_q_norm = is_formed,
                                .has_k_norm = is_formed,
                                .q_eps = q_norm_.eps,
                                .k_eps = k_norm_.eps,
                                .rope = is_formed != 0 ? rope_pairs(rope_) : RopePairs{}};
    auto results = run_everywhere(call(
        kernels_of(layer_.type).store,
        {counts(n_rows), contents(rows.q.data), contents(rows.k.data), contents(rows.v.data),
         is_formed != 0 ? weights_.bytes(q_norm_.weight) : no_buffer(),
         is_formed != 0 ? weights_.bytes(k_norm_.weight) : no_buffer(),
         is_formed != 0 ? contents(rope_angles(rope_, rows.step.positions)) : no_buffer(),
         contents(rows.step.positions), contents(rows.step.sequences),
         contents(rows.step.block_tables), poisoned((n_rows + 1) * q_floats()), keys_, values_},
        params, {params.n_heads + params.n_kv_heads, n_rows + 1}, {n_rows > 4 ? 32u : 128u}));
    keys_ = results[11];
    values_ = results[12];
    return results[10];
  }

  [[nodiscard]] AttentionParams attention_params(std::uint32_t n_parts) const {
    return {.n_heads = static_cast<u32>(layer_.n_heads),
            .n_kv_heads = static_cast<u32>(layer_.n_kv_heads),
            .head_dim = static_cast<u32>(layer_.head_dim),
            .table_stride = static_cast<u32>(table_stride_),
            .n_parts = n_parts,
            .window = static_cast<u32>(layer_.window),
            .scale = params_.scale};
  }

  Contents attend(const Contents& q, std::uint32_t n_parts, std::uint32_t heads,
                  std::uint32_t n_threads) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    const auto record = static_cast<std::size_t>(layer_.head_dim + (n_parts == 0 ? 0 : 2));
    const std::size_t n_records =
        static_cast<std::size_t>(layer_.n_heads) * std::max(n_parts, 1u) * (n_rows + 1);
    return run_everywhere(call(kernels_of(layer_.type).attend,
                               {counts(n_rows), q, contents(rows_.step.positions),
                                contents(rows_.step.sequences), contents(rows_.step.block_tables),
                                keys_, values_, poisoned(n_records * record)},
                               attention_params(n_parts),
                               {std::max(n_parts, 1u), heads, n_rows + 1}, {n_threads}))
        .back();
  }

  Contents attend_rows(const Contents& q) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    const auto n_kv_heads = static_cast<u32>(layer_.n_kv_heads);
    const auto group = static_cast<u32>(layer_.n_heads / layer_.n_kv_heads);
    const u32 n_groups = n_rows * group / ATTENTION_ROWS_QUERIES + 2;  // one has nothing to do
    return run_everywhere(
               call(kernels_of(layer_.type).attend_rows,
                    {counts(n_rows), q, contents(rows_.step.positions),
                     contents(rows_.step.sequences), contents(rows_.step.block_tables), keys_,
                     values_, poisoned(std::size_t{n_groups} * n_kv_heads * ATTENTION_ROWS_SCORES),
                     poisoned((n_rows + 1) * q_floats())},
                    attention_params(0), {n_kv_heads, n_groups}, {ATTENTION_ROWS_THREADS}))
        .back();
  }

  Contents combine(const Contents& partials) {
    const auto n_rows = static_cast<u32>(rows_.step.positions.size());
    return run_everywhere(call(KernelId::attention_combine_f32,
                               {counts(n_rows), partials, contents(rows_.step.positions),
                                no_buffer(), poisoned((n_rows + 1) * q_floats())},
                               attention_params(n_parts()),
                               {static_cast<u32>(layer_.n_heads), n_rows + 1}, {64}))
        .back();
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

}  // namespace
}  // namespace hearth::backend::gpu
