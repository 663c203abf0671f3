#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/metadata.h"
#include "graph/graph.h"
#include "graph/kv_cache.h"
#include "graph/state_cache.h"
#include "model/hyper_params.h"
#include "model/mtp_head.h"
#include "model/weight_binder.h"

namespace hearth::model {

/// A model of one architecture, bound to the weights of one file: it can write down its step.
class Architecture {
 public:
  virtual ~Architecture() = default;

  [[nodiscard]] virtual const HyperParams& params() const = 0;
  /// What the KV cache holds per attention layer.
  [[nodiscard]] virtual std::vector<graph::KvLayer> kv_layers() const = 0;
  /// What a state slot holds per recurrent layer.
  [[nodiscard]] virtual std::vector<graph::StateLayer> state_layers() const { return {}; }
  /// Records the step of `bucket` rows: token ids of the step block in, logits [logit rows, vocab]
  /// out. `weights` is the table that the binder filled.
  [[nodiscard]] virtual Result<graph::Graph> record(const graph::WeightTable& weights,
                                                    graph::RowBucket bucket) const = 0;
  /// nullptr for a model without such a head.
  [[nodiscard]] virtual const MtpHead* mtp() const { return nullptr; }
};

/// One line of the list in model/arch/all.cpp.
struct ArchitectureEntry {
  std::string_view name;  // general.architecture
  Result<std::unique_ptr<Architecture>> (*bind)(WeightBinder& weights);
};

/// Every architecture, in alphabetical order.
std::span<const ArchitectureEntry> all_architectures();

/// Errors: unsupported, with the list of known ones.
Result<const ArchitectureEntry*> find_architecture(const formats::Metadata& metadata);

}  // namespace hearth::model
