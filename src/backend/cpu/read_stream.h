#pragma once

#include <cstdint>

#include "backend/cpu/thread_pool.h"
#include "tensor/buffer.h"

namespace hearth::backend::cpu {

/// How fast the threads of a pool read memory together: the denominator of every decode speed,
/// because a decode step reads all weights once. One thread at a time.
class ReadStream {
 public:
  /// `n_bytes` should be several times the last-level cache; each thread touches its own part
  /// first.
  ReadStream(int n_threads, std::int64_t n_bytes);

  /// Reads the whole buffer once and returns bytes per second.
  double measure();

 private:
  ThreadPool pool_;
  Buffer buffer_;
  std::uint64_t checksum_ = 0;  // keeps the reads from being optimised away
};

}  // namespace hearth::backend::cpu
