#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/cpu/thread_pool.h"
#include "tensor/buffer.h"

namespace hearth::backend::cpu {

/// How fast the threads of a pool of its own read memory together.
class CpuReadStream final : public ReadStream {
 public:
  /// `n_bytes` should be several times the last-level cache; each thread touches its own part
  /// first.
  CpuReadStream(int n_threads, std::int64_t n_bytes);

  /// Reads the whole buffer once.
  Result<double> measure() override;

 private:
  ThreadPool pool_;
  Buffer buffer_;
  std::uint64_t checksum_ = 0;  // keeps the reads from being optimised away
};

}  // namespace hearth::backend::cpu
