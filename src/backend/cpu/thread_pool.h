#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace hearth::backend::cpu {

/// Where the threads of one job meet. The last to arrive opens the next generation; nobody can
/// arrive twice in one, so the count of arrivals is free to start again. On cache lines of their
/// own: everyone writes the one and spins on the other.
class Barrier {
 public:
  explicit Barrier(int n_threads) : n_threads_(n_threads) {}

  /// Returns once all threads have arrived; everything written before is visible after. Spins, then
  /// yields.
  void arrive_and_wait();

 private:
  int n_threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

/// One thread's part in a job.
struct Worker {
  int index = 0;  // 0 is the calling thread
  int count = 1;
  Barrier* barrier = nullptr;

  void wait_for_all() const { barrier->arrive_and_wait(); }

  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  /// This thread's share of `n` equal pieces of work: contiguous, and a function of (n, index,
  /// count) alone.
  [[nodiscard]] Range share(std::int64_t n) const {
    return {n * index / count, n * (index + 1) / count};
  }
};

/// Persistent threads for jobs in which every thread runs the same function and they meet at
/// barriers. The calling thread is worker 0. Idle threads spin for a few tens of microseconds, then
/// sleep. run() is for one thread at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int n_threads() const { return n_threads_; }

  /// Calls job(worker) on every thread and returns when all have returned. Allocates nothing; a
  /// job throws nothing.
  template <class Job>
  void run(const Job& job) {
    run_erased([](const void* context,
                  const Worker& worker) { (*static_cast<const Job*>(context))(worker); },
               &job);
  }

 private:
  using Function = void (*)(const void* context, const Worker& worker);

  void run_erased(Function function, const void* context);
  void work(int index);
  [[nodiscard]] Worker worker(int index) { return {index, n_threads_, &barrier_}; }

  int n_threads_;
  Barrier barrier_;
  // Written before job_ is counted up and read after that was seen; the barrier at the end of a job
  // keeps them until the last thread is done.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  std::atomic<std::uint32_t> job_{0};  // counts jobs; sleeping threads wait for it to change
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace hearth::backend::cpu
