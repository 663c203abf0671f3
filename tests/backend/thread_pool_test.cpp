#include "backend/cpu/thread_pool.h"

#include <algorithm>
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

/// Who did the pieces of some loops: [loop][piece], -1 for nobody and -2 for more than one.
using Doers = std::vector<std::vector<int>>;

/// Shares out loops of pieces on a pool; `before(worker, n_done)` is called before each part, with
/// the pieces that all threads have finished.
template <class F>
Doers share_out(ThreadPool& pool, const std::vector<Pieces>& loops, const F& before) {
  std::vector<std::vector<std::atomic<int>>> doers;
  for (const auto& loop : loops) {
    doers.emplace_back(static_cast<std::size_t>(loop.n));
    for (auto& doer : doers.back()) {
      doer = -1;
    }
  }
  std::atomic<std::int64_t> n_done{0};
  pool.run([&](const Worker& worker) {
    worker.share_out(
        std::ssize(loops), [&](std::int64_t i) { return loops[static_cast<std::size_t>(i)]; },
        [&](std::int64_t loop, std::int64_t begin, std::int64_t end) {
          before(worker, n_done);
          for (std::int64_t piece = begin; piece < end; ++piece) {
            auto& doer = doers[static_cast<std::size_t>(loop)][static_cast<std::size_t>(piece)];
            int nobody = -1;
            if (!doer.compare_exchange_strong(nobody, worker.index)) {
              doer = -2;
            }
          }
          n_done += end - begin;
        });
  });
  Doers result;
  for (const auto& loop : doers) {
    result.emplace_back(loop.begin(), loop.end());
  }
  return result;
}

int count(const Doers& doers, int who) {
  int n = 0;
  for (const auto& loop : doers) {
    n += static_cast<int>(std::count(loop.begin(), loop.end(), who));
  }
  return n;
}

constexpr auto at_once = [](const Worker&, const std::atomic<std::int64_t>&) {};

TEST(ThreadPool, SharesOutEveryPieceOnce) {
  for (const int n_threads : {1, 2, 3, 8}) {
    for (const double fixed_share : {0.0, 0.4, equal_share, 1.0}) {
      ThreadPool pool(n_threads, fixed_share);
      for (const std::vector<Pieces>& loops :
           std::vector<std::vector<Pieces>>{{},
                                            {{0, 1}},
                                            {{1, 1}},
                                            {{7, 3}},
                                            {{500, 4}},
                                            {{100, 1}, {0, 1}, {333, 7}, {2, 9}}}) {
        const Doers doers = share_out(pool, loops, at_once);
        EXPECT_EQ(count(doers, -1), 0);
        EXPECT_EQ(count(doers, -2), 0);
      }
    }
  }
}

TEST(ThreadPool, LeavesToOthersWhatASlowThreadHasNotClaimed) {
  constexpr int n_threads = 4;
  constexpr std::int64_t n = 400;
  ThreadPool pool(n_threads);
  const std::int64_t own = static_cast<std::int64_t>(n * equal_share) / n_threads;
  for (const int slow : {0, 2}) {
    const Doers doers = share_out(
        pool, {{n, 2}}, [&](const Worker& worker, const std::atomic<std::int64_t>& n_done) {
          while (worker.index == slow && n_done < n - own) {  // ends when all the rest is done
            std::this_thread::yield();
          }
        });
    EXPECT_EQ(count(doers, slow), own);
    EXPECT_EQ(count(doers, -1) + count(doers, -2), 0);
  }
}

TEST(ThreadPool, GivesCoresThatDifferLessToStartWith) {
  constexpr std::int64_t n = 400;
  ThreadPool pool(4, 0.5);
  const Doers doers =
      share_out(pool, {{n, 2}}, [&](const Worker& worker, const std::atomic<std::int64_t>& n_done) {
        while (worker.index == 1 && n_done < n - 50) {
          std::this_thread::yield();
        }
      });
  EXPECT_EQ(count(doers, 1), 50);
}

TEST(ThreadPool, SharesEvenlyWhereClaimsDoNotPay) {
  ThreadPool pool(2);
  const Doers doers = share_out(pool, {{24, 1}}, at_once);  // 24 - 20 pieces are 4 claims, enough
  EXPECT_EQ(count(doers, -1) + count(doers, -2), 0);
  for (const Pieces& pieces : {Pieces{24, 2}, Pieces{40, 2}}) {
    EXPECT_EQ(count(share_out(pool, {pieces}, at_once), 0), pieces.n / 2);
  }
}

TEST(ThreadPool, SharesOutOnMoreThreadsThanCores) {
  ThreadPool pool(4 * available_cores() + 1, 0.5);
  for (int job = 0; job < 100; ++job) {
    const Doers doers = share_out(pool, {{200, 1}, {64, 3}}, at_once);
    ASSERT_EQ(count(doers, -1) + count(doers, -2), 0);
  }
}

TEST(ThreadPool, HandsOutTasksOneByOne) {
  constexpr int n_tasks = 50;
  ThreadPool pool(3);
  for (int job = 0; job < 20; ++job) {
    std::vector<int> times(n_tasks, 0);
    pool.run([&](const Worker& worker) {
      for (std::int64_t task = worker.index; task < n_tasks; task = worker.next_task()) {
        ++times[static_cast<std::size_t>(task)];
      }
    });
    EXPECT_EQ(times, std::vector<int>(n_tasks, 1));
  }
}

}  // namespace
}  // namespace hearth::backend::cpu
