#pragma once
/// Feeds token sequences through a session in chunks, alone or together, and collects the logits.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "tests/graph/tiny_model.h"

namespace hearth::backend {

/// One prompt of a test.
using Tokens = std::vector<TokenId>;
Tokens random_tokens(std::size_t n, std::int64_t vocab, std::uint32_t seed);

/// How sequences are cut into steps.
struct Schedule {
  std::size_t chunk = 1;               // rows of each sequence per step
  std::size_t logits_every = 1;        // ask for the logits of every n-th row, and of the last
  std::int64_t spare_bucket_rows = 0;  // rows of the bucket beyond the largest step
};

/// Logits of each position that asked for them, by sequence; empty for the others.
using Logits = std::vector<std::vector<std::vector<float>>>;

/// Runs all sequences side by side in a fresh session: each step takes a chunk of each, and their
/// cache blocks lie scattered.
Logits run_schedule(Backend& backend, const graph::TinyModel& model, DType kv_dtype,
                    const std::vector<Tokens>& sequences, const Schedule& schedule);

/// The definition of the right answer: each sequence alone and in one piece, by the reference.
Logits reference_logits(const graph::TinyModel& model, DType kv_dtype,
                        const std::vector<Tokens>& sequences);

/// Logits that are all the same number, or not numbers, would make any comparison pass.
void expect_varied(const Logits& logits);

/// "" if every logit that `actual` has equals the one in `expected` bit for bit; otherwise the
/// first difference.
std::string first_difference(const Logits& expected, const Logits& actual);

/// What a test goes through: `all`, or in a build with sanitizers `some`. Those builds look for
/// faults of memory and threads, the others for wrong bits, ten times as fast.
template <class T>
std::vector<T> all_or_some([[maybe_unused]] const std::vector<T>& all,
                           [[maybe_unused]] const std::vector<T>& some) {
#if defined(HEARTH_SANITIZED)
  return some;
#else
  return all;
#endif
}

/// Threads in tests that are about something else: one where the address sanitizer makes everything
/// slow, and ctest keeps all cores busy, so that threads would wait for one another.
inline constexpr int n_test_threads = HEARTH_TEST_THREADS;

/// The kernel sets that this machine can run.
std::vector<std::string_view> kernel_set_names();
/// Those sets, or in a build with sanitizers the first, for tests that go through every type of
/// weights: the accesses of every set's products are those of matmul_kernels_test.cpp.
std::vector<std::string_view> kernel_sets_for_every_type();
/// The CPU backend with a kernel set of this name.
std::unique_ptr<Backend> cpu_backend(std::string_view kernels, int n_threads,
                                     WeightLayout layout = WeightLayout::tiles);

}  // namespace hearth::backend
