#include "backend/cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cpu/machine.h"

namespace hearth::backend::cpu {
namespace {

TEST(ThreadPool, RunsAJobOnceOnEveryThread) {
  for (const int n_threads : {1, 2, 5}) {
    ThreadPool pool(n_threads);
    std::vector<int> calls(static_cast<std::size_t>(n_threads), 0);
    pool.run([&](const Worker& worker) {
      EXPECT_EQ(worker.count, n_threads);
      ++calls[static_cast<std::size_t>(worker.index)];
    });
    EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(n_threads), 1));
  }
}

// Unsynchronised memory on purpose: the thread sanitizer then checks what run() and the barriers
// promise.
TEST(ThreadPool, MakesWritesVisibleAcrossBarriersAndJobs) {
  constexpr int n_threads = 4;
  ThreadPool pool(n_threads);
  std::vector<int> values(n_threads, 0);
  std::vector<int> sums(n_threads, 0);
  for (int job = 1; job <= 200; ++job) {
    pool.run([&](const Worker& worker) {
      const auto own = static_cast<std::size_t>(worker.index);
      for (int phase = 0; phase < 5; ++phase) {
        values[own] += job;
        worker.wait_for_all();
        sums[own] = std::accumulate(values.begin(), values.end(), 0);
        worker.wait_for_all();
      }
    });
    const int expected = n_threads * 5 * job * (job + 1) / 2;
    ASSERT_EQ(sums, std::vector<int>(n_threads, expected));
  }
}

TEST(ThreadPool, RunsManyShortJobsOnMoreThreadsThanCores) {
  const int n_threads = 3 * available_cores();
  ThreadPool pool(n_threads);
  std::atomic<int> calls{0};
  constexpr int n_jobs = 300;
  for (int job = 0; job < n_jobs; ++job) {
    pool.run([&](const Worker&) { calls.fetch_add(1, std::memory_order_relaxed); });
  }
  EXPECT_EQ(calls.load(), n_jobs * n_threads);
}

TEST(ThreadPool, WakesThreadsThatFellAsleep) {
  ThreadPool pool(3);
  int total = 0;
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far longer than they spin
    std::vector<int> calls(3, 0);
    pool.run([&](const Worker& worker) { calls[static_cast<std::size_t>(worker.index)] = 1; });
    total += std::accumulate(calls.begin(), calls.end(), 0);
  }
  EXPECT_EQ(total, 9);
}

TEST(ThreadPool, EndsWhileItsThreadsAreSleepingOrSpinning) {
  for (const int pause_ms : {0, 20}) {
    ThreadPool unused(4);
    ThreadPool used(4);
    used.run([](const Worker&) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
}

TEST(Worker, SharesAreContiguousAndCoverEverything) {
  for (const std::int64_t n : {0, 1, 3, 4, 17}) {
    std::int64_t next = 0;
    for (int index = 0; index < 4; ++index) {
      const auto share = Worker{.index = index, .count = 4}.share(n);
      EXPECT_EQ(share.begin, next);
      EXPECT_LE(share.end - share.begin, n / 4 + 1);
      next = share.end;
    }
    EXPECT_EQ(next, n);
  }
}

}  // namespace
}  // namespace hearth::backend::cpu
