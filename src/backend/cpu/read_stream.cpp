#include "backend/cpu/read_stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/memory_advice.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::int64_t chunk_bytes = 64;  // a cache line
constexpr std::int64_t n_words = chunk_bytes / sizeof(std::uint64_t);
/// As far as kernels ask ahead. Without that some processors leave half of their bandwidth unused,
/// which would make the bound of decode lower than decode.
constexpr std::int64_t chunks_ahead = 6144 / chunk_bytes;

std::uint64_t sum_of_words(const std::uint64_t* words, std::int64_t n_chunks) {
  std::uint64_t sums[n_words] = {};  // independent, so that additions never wait for each other
  for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) {
    __builtin_prefetch(words + (chunk + chunks_ahead) * n_words, 0, 2);
    for (std::int64_t i = 0; i < n_words; ++i) {
      sums[i] += words[chunk * n_words + i];
    }
  }
  std::uint64_t sum = 0;
  for (const auto part : sums) {
    sum += part;
  }
  return sum;
}

}  // namespace

CpuReadStream::CpuReadStream(int n_threads, std::int64_t n_bytes)
    : pool_(n_threads), buffer_(n_bytes) {
  advise_huge_pages(buffer_.bytes());
  pool_.run([this](const Worker& worker) {
    const auto chunks = worker.share(buffer_.size() / chunk_bytes);
    auto* words = buffer_.data<std::uint64_t>();
    std::fill(words + chunks.begin * n_words, words + chunks.end * n_words, 1);
  });
}

Result<double> CpuReadStream::measure() {
  std::atomic<std::uint64_t> sum{0};
  const auto start = std::chrono::steady_clock::now();
  pool_.run([&](const Worker& worker) {
    const auto chunks = worker.share(buffer_.size() / chunk_bytes);
    const auto* words = buffer_.data<std::uint64_t>() + chunks.begin * n_words;
    sum.fetch_add(sum_of_words(words, chunks.end - chunks.begin), std::memory_order_relaxed);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  checksum_ += sum;
  return static_cast<double>(buffer_.size()) / seconds.count();
}

}  // namespace hearth::backend::cpu
