#pragma once
/// What a session keeps from one step to the next.

#include "base/result.h"
#include "graph/kv_cache.h"
#include "graph/row_store.h"
#include "graph/state_cache.h"

namespace hearth::graph {

struct CacheDescs {
  KvCacheDesc kv;
  StateCacheDesc states;
  RowStoreDesc rows;

  [[nodiscard]] std::int64_t bytes() const { return kv.bytes() + states.bytes() + rows.bytes(); }
  /// Errors: those of the parts.
  [[nodiscard]] Result<void> check() const {
    HEARTH_TRY(kv.check());
    return states.check();
  }
};

/// The same in host memory.
struct HostCaches {
  /// `descs` have passed check().
  explicit HostCaches(const CacheDescs& descs)
      : kv(descs.kv), states(descs.states), rows(descs.rows) {}

  HostKvCache kv;
  HostStateCache states;
  HostRowStore rows;
};

}  // namespace hearth::graph
