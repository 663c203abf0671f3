#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "graph/ops/rope.h"

namespace hearth::model {

/// The numbers every decoder-only transformer has. What only one architecture has stays in its
/// file.
struct HyperParams {
  std::int64_t n_layers = 0;
  std::int64_t context = 0;  // trained context length
  std::int64_t embed = 0;
  std::int64_t ffn = 0;  // of dense layers
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;  // rows of the embedding table
  float norm_eps = 0;

  bool operator==(const HyperParams&) const = default;
};

/// Metadata keys below the name of the architecture: key("rope.freq_base") is
/// "llama.rope.freq_base".
class ArchKeys {
 public:
  ArchKeys(const formats::Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(architecture) {}

  [[nodiscard]] std::string key(std::string_view name) const {
    return prefix_ + "." + std::string(name);
  }
  [[nodiscard]] const formats::Metadata& metadata() const { return metadata_; }

  template <formats::MetadataType T>
  [[nodiscard]] Result<T> get(std::string_view name) const {
    return metadata_.get<T>(key(name));
  }
  template <formats::MetadataType T>
  [[nodiscard]] Result<T> get_or(std::string_view name, T fallback) const {
    HEARTH_ASSIGN(auto found, metadata_.find<T>(key(name)));
    return found.value_or(fallback);
  }

  /// An integer within [low, high].
  [[nodiscard]] Result<std::int64_t> count(std::string_view name, std::int64_t low,
                                           std::int64_t high) const;
  [[nodiscard]] Result<std::int64_t> count_or(std::string_view name, std::int64_t fallback,
                                              std::int64_t low, std::int64_t high) const;
  /// A finite number greater than zero.
  [[nodiscard]] Result<float> positive_or(std::string_view name, float fallback) const;

 private:
  const formats::Metadata& metadata_;
  std::string prefix_;
};

/// Whether each layer has keys and values, or hybrid models may have layers without.
enum class KvHeads { in_every_layer, in_some_layers };

/// Reads and bounds the common keys. `vocab` comes from the embedding tensor.
/// Errors: not_found for a required key, invalid_file for a value out of range; both name file and
/// key.
Result<HyperParams> read_hyper_params(const ArchKeys& keys, std::int64_t vocab,
                                      KvHeads kv_heads = KvHeads::in_every_layer);

/// `attention.head_count_kv` where it is a list: an entry for each layer, 0 or one number for all;
/// blocks that predict further tokens may be left out. nullopt where it is one number or absent.
/// Errors: invalid_file for another length.
Result<std::optional<std::vector<std::int64_t>>> find_kv_heads_by_layer(const ArchKeys& keys);

/// Blocks at the end of the file that predict further tokens and are no part of the trunk.
Result<std::int64_t> read_prediction_blocks(const ArchKeys& keys);

/// Reads rope.* into everything but pairing and freq_divisors: dimension_count, freq_base and the
/// scaling keys (none, linear, yarn). Errors: unsupported for another scaling type.
Result<graph::RopeParams> read_rope(const ArchKeys& keys, const HyperParams& params);

}  // namespace hearth::model
