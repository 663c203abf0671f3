#include "model/facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "model/hyper_params.h"

namespace hearth::model {
namespace {

constexpr std::string_view embedding = "embedding";
constexpr std::string_view all_experts = "experts";
constexpr std::string_view head = "head";
constexpr std::string_view rest = "norms and other";

/// In the order in which a token meets them.
constexpr std::array<std::string_view, 11> component_names{
    embedding, "recurrent input", "convolution",   "recurrent output", "attention",
    "router",  all_experts,       "shared expert", "feed-forward",     head,
    rest};

/// Which component a tensor of a block belongs to, by the beginning of its name.
struct Prefix {
  std::string_view text;
  std::string_view component;
  std::string_view recurrent_component = component;  // in a recurrent layer
};
constexpr std::array prefixes{
    Prefix{"ssm_conv1d", "convolution"},
    Prefix{"ssm_out", "recurrent output"},
    Prefix{"ssm_norm", rest},
    Prefix{"ssm_alpha", "recurrent input"},
    Prefix{"ssm_beta", "recurrent input"},
    Prefix{"ssm_ba", "recurrent input"},
    Prefix{"ssm_in", "recurrent input"},
    Prefix{"attn_q_norm", rest},
    Prefix{"attn_k_norm", rest},
    Prefix{"attn_norm", rest},
    Prefix{"attn_", "attention", "recurrent input"},
    Prefix{"ffn_gate_inp.", "router"},
    Prefix{"ffn_gate_inp_shexp", "shared expert"},
    Prefix{"ffn_gate_shexp", "shared expert"},
    Prefix{"ffn_up_shexp", "shared expert"},
    Prefix{"ffn_down_shexp", "shared expert"},
    Prefix{"ffn_gate_exps", all_experts},
    Prefix{"ffn_up_exps", all_experts},
    Prefix{"ffn_gate_up_exps", all_experts},
    Prefix{"ffn_down_exps", all_experts},
    Prefix{"ffn_norm", rest},
    Prefix{"ffn_", "feed-forward"},
};

/// "blk.7.attn_q.weight" as 7 and "attn_q.weight"; nullopt for a tensor outside the blocks.
struct BlockTensor {
  std::int64_t block = 0;
  std::string_view name;
};
std::optional<BlockTensor> in_block(std::string_view name) {
  constexpr std::string_view start = "blk.";
  if (!name.starts_with(start)) {
    return std::nullopt;
  }
  BlockTensor found;
  const char* end = name.data() + name.size();
  const auto [next, error] = std::from_chars(name.data() + start.size(), end, found.block);
  if (error != std::errc() || next == end || *next != '.' || found.block < 0) {
    return std::nullopt;
  }
  found.name = {next + 1, static_cast<std::size_t>(end - next - 1)};
  return found;
}

/// A count that says nothing when it is absent or out of range.
std::int64_t count_or_zero(const ArchKeys& keys, std::string_view name, std::int64_t high) {
  return keys.count_or(name, 0, 0, high).value_or(0);
}

class FactFinder {
 public:
  FactFinder(const ArchKeys& keys, std::span<const TensorFacts> tensors)
      : keys_(keys),
        tensors_(tensors),
        n_experts_(count_or_zero(keys, "expert_count", 1 << 20)),
        n_used_(count_or_zero(keys, "expert_used_count", n_experts_)) {
    for (const auto name : component_names) {
      components_[name].name = name;
    }
    has_head_ = std::any_of(tensors.begin(), tensors.end(),
                            [](const auto& tensor) { return tensor.name == "output.weight"; });
    constexpr std::int64_t max_layers = 4096;
    const std::int64_t n_blocks = count_or_zero(keys, "block_count", max_layers);
    const std::int64_t n_prediction = count_or_zero(keys, "nextn_predict_layers", n_blocks);
    facts_.layers.assign(static_cast<std::size_t>(n_blocks - n_prediction), LayerKind::other);
  }

  ModelFacts find() {
    for (const auto& tensor : tensors_) {
      classify_layer(tensor);
    }
    for (const auto& tensor : tensors_) {
      add(tensor);
    }
    for (const auto name : component_names) {
      if (components_[name].n_parameters > 0 || components_[name].n_active > 0) {
        facts_.components.push_back(components_[name]);
      }
    }
    return std::move(facts_);
  }

 private:
  [[nodiscard]] LayerKind* layer_of(const BlockTensor& tensor) {
    const auto i = static_cast<std::size_t>(tensor.block);
    return i < facts_.layers.size() ? &facts_.layers[i] : nullptr;
  }

  void classify_layer(const TensorFacts& tensor) {
    const auto place = in_block(tensor.name);
    auto* layer = place ? layer_of(*place) : nullptr;
    if (layer == nullptr) {
      return;
    }
    if (place->name == "ssm_a") {
      *layer = LayerKind::recurrent;
    } else if (place->name == "attn_k.weight") {
      *layer = LayerKind::attention;
    }
  }

  void add(const TensorFacts& tensor) {
    const std::int64_t n = tensor.shape.elements();
    const auto place = in_block(tensor.name);
    if (place && layer_of(*place) == nullptr) {
      facts_.n_prediction_parameters += n;
      return;
    }
    facts_.n_parameters += n;
    if (!place) {
      add_outside_blocks(tensor, n);
      return;
    }
    const LayerKind kind = *layer_of(*place);
    auto& component = components_[component_of(place->name, kind)];
    const bool is_chosen = component.name == all_experts && n_experts_ > 0;
    component.n_parameters += n;
    component.n_active += is_chosen ? n / n_experts_ * n_used_ : n;
    component.active_bytes += is_chosen ? tensor.n_bytes / n_experts_ * n_used_ : tensor.n_bytes;
    if (place->name == "attn_k.weight" || place->name == "attn_v.weight") {
      facts_.kv_elements += tensor.shape[0];
    }
    add_state(*place, tensor);
  }

  void add_outside_blocks(const TensorFacts& tensor, std::int64_t n) {
    const bool is_table = tensor.name == "token_embd.weight" && tensor.shape.rank() == 2;
    if (is_table) {
      const std::int64_t n_rows = std::max<std::int64_t>(tensor.shape[0], 1);
      auto& component = components_[embedding];
      component.n_parameters += n;
      component.n_active += tensor.shape.back();
      component.active_bytes += tensor.n_bytes / n_rows;
    }
    if (!is_table || !has_head_) {  // the table is the head as well where there is no other
      auto& component = components_[is_table || tensor.name == "output.weight" ? head : rest];
      component.n_parameters += is_table ? 0 : n;
      component.n_active += n;
      component.active_bytes += tensor.n_bytes;
    }
  }

  /// Memories are n_heads x key_dim x value_dim, the ring has an entry fewer than the taps.
  void add_state(const BlockTensor& place, const TensorFacts& tensor) {
    constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));
    constexpr std::int64_t most = 1 << 20;
    if (place.name == "ssm_a") {
      facts_.state_bytes += count_or_zero(keys_, "ssm.inner_size", most) *
                            count_or_zero(keys_, "ssm.state_size", most) * float_bytes;
    } else if (place.name == "ssm_conv1d.weight" && tensor.shape.rank() == 2) {
      facts_.state_bytes += tensor.shape[0] * (tensor.shape.back() - 1) * float_bytes;
    }
  }

  static std::string_view component_of(std::string_view name, LayerKind kind) {
    const auto* found = std::find_if(prefixes.begin(), prefixes.end(), [&](const Prefix& prefix) {
      return name.starts_with(prefix.text);
    });
    if (found == prefixes.end()) {
      return rest;
    }
    return kind == LayerKind::recurrent ? found->recurrent_component : found->component;
  }

  const ArchKeys& keys_;
  std::span<const TensorFacts> tensors_;
  std::int64_t n_experts_;
  std::int64_t n_used_;
  bool has_head_ = false;
  std::map<std::string_view, Component> components_;
  ModelFacts facts_;
};

}  // namespace

std::string_view name_of(LayerKind kind) {
  constexpr std::array<std::string_view, 3> names{"attention", "recurrent", "other"};
  return names[static_cast<std::size_t>(kind)];
}

std::int64_t ModelFacts::n_active() const {
  std::int64_t n = 0;
  for (const auto& component : components) {
    n += component.name == embedding ? 0 : component.n_active;
  }
  return n;
}

std::int64_t ModelFacts::active_bytes() const {
  std::int64_t n = 0;
  for (const auto& component : components) {
    n += component.active_bytes;
  }
  return n;
}

ModelFacts facts_of(const formats::Metadata& metadata, std::span<const TensorFacts> tensors) {
  const auto architecture = metadata.find<std::string_view>("general.architecture");
  const ArchKeys keys(metadata,
                      architecture && *architecture ? **architecture : std::string_view());
  return FactFinder(keys, tensors).find();
}

}  // namespace hearth::model
