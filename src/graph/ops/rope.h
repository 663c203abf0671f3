#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "base/math.h"
#include "graph/ops/op_context.h"

namespace hearth::graph {

class GraphBuilder;

/// Which elements of a head rotate together.
enum class RopePairing : std::uint8_t {
  adjacent,    // (2j, 2j + 1): GGUF "normal", llama
  half_split,  // (j, j + n_rot / 2): GGUF "NeoX", qwen and gemma
};

/// YaRN context extension. Source: Peng et al. 2023, "YaRN", sections 3.2-3.4; parameter names as
/// in GGUF.
struct Yarn {
  float ext_factor = 1.0f;   // 0 switches the frequency ramp off
  float attn_factor = 1.0f;  // on top of the magnitude 1 + 0.1 ln(factor)
  float magnitude = 0;       // instead of both; 0: not given
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  float original_context = 0;

  bool operator==(const Yarn&) const = default;
};

/// How positions become angles: everything but the tensor it is applied to.
struct RopeParams {
  RopePairing pairing{};
  std::int64_t head_dim = 0;
  std::int64_t n_rot = 0;  // rotated elements per head, even; the rest pass through
  float base = 10000.0f;
  float position_scale = 1.0f;  // 1 / factor of linear scaling (and of YaRN's interpolated part)
  std::optional<Yarn> yarn;
  std::optional<WeightId> freq_divisors;  // [n_rot / 2] f32 (llama 3 scaling)

  bool operator==(const RopeParams&) const = default;
};

/// Rotary position embedding of each head of x [rows, heads * head_dim]; positions come from the
/// step block. Source: Su et al. 2021, "RoFormer", equation 34.
struct Rope {
  static constexpr std::string_view name = "rope";
  RopeParams params;

  Result<ValueDesc> infer(std::span<const ValueDesc> inputs, const WeightTable& weights,
                          std::int64_t n_rows) const;
  void run(const OpContext& context, std::span<const ConstRows> inputs, Rows out) const;
};

ValueId rope(GraphBuilder& g, ValueId x, const RopeParams& params);

/// Angles per position and the factor on the rotated pair, worked out once per plan.
struct RopeTable {
  RopeTable(const RopeParams& params, const WeightTable& weights);

  /// cos and sin of every pair at `position`, each [n_rot / 2], times the magnitude.
  void angles(std::int32_t position, float* cosines, float* sines) const {
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
      const auto angle =
          canonical_sincos(static_cast<double>(position) * static_cast<double>(frequencies[pair]));
      cosines[pair] = angle.cos * magnitude;
      sines[pair] = angle.sin * magnitude;
    }
  }

  std::vector<float> frequencies;  // radians per position, [n_rot / 2]
  float magnitude = 1.0f;
};

/// Rotates one head: in and out are [head_dim] and may be the same.
inline void rotate_head(const RopeParams& params, const float* cosines, const float* sines,
                        const float* in, float* out) {
  const std::int64_t half = params.n_rot / 2;
  const bool adjacent = params.pairing == RopePairing::adjacent;
  for (std::int64_t pair = 0; pair < half; ++pair) {
    const std::int64_t first = adjacent ? 2 * pair : pair;
    const std::int64_t second = adjacent ? 2 * pair + 1 : pair + half;
    const float a = in[first];
    const float b = in[second];
    out[first] = std::fma(a, cosines[pair], -(b * sines[pair]));
    out[second] = std::fma(a, sines[pair], b * cosines[pair]);
  }
  for (std::int64_t i = params.n_rot; i < params.head_dim; ++i) {
    out[i] = in[i];
  }
}

}  // namespace hearth::graph
