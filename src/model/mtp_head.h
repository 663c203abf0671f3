#pragma once

#include "base/result.h"
#include "graph/graph.h"
#include "graph/kv_cache.h"

namespace hearth::model {

/// A multi-token-prediction head: one more block behind the trunk, which from the trunk's last
/// hidden row at position p and the token at p + 1 predicts the token at p + 2. Its own hidden row
/// can stand in for the trunk's, to go on from its prediction. Trunk and head hand rows over in the
/// row store; head rows stand at the position of the hidden row that they load.
/// Source: DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 2.2.
class MtpHead {
 public:
  virtual ~MtpHead() = default;

  /// The head's layer of the KV cache, which follows those of the trunk.
  [[nodiscard]] virtual graph::KvLayer mtp_kv_layer() const = 0;
  /// The trunk's step, as Architecture::record(), which also stores the row behind the final norm.
  [[nodiscard]] virtual Result<graph::Graph> record_storing_trunk(
      const graph::WeightTable& weights, graph::RowBucket bucket) const = 0;
  /// The head's step: loads hidden rows, takes token ids, stores its own hidden rows, gives logits.
  [[nodiscard]] virtual Result<graph::Graph> record_mtp(const graph::WeightTable& weights,
                                                        graph::RowBucket bucket) const = 0;
  /// The head's step where nobody wants guesses: the same keys and values, and nothing else. What
  /// it gives means nothing.
  [[nodiscard]] virtual Result<graph::Graph> record_mtp_reading(const graph::WeightTable& weights,
                                                                graph::RowBucket bucket) const = 0;
};

}  // namespace hearth::model
