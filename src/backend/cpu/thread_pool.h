#pragma once

#include <algorithm>
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

  /// How often the threads have called this since they last met.
  std::int64_t claim() { return n_claims_.fetch_add(1, std::memory_order_relaxed); }

 private:
  int n_threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
  alignas(64) std::atomic<std::int64_t> n_claims_{0};
};

/// A loop of `n` equal pieces of work, of which it takes `at_once` to be worth a claim.
struct Pieces {
  std::int64_t n;
  std::int64_t at_once;
  double fixed_share = 1;  // of what share_out() would share out at the beginning
};

/// One thread's part in a job.
struct Worker {
  int index = 0;  // 0 is the calling thread
  int count = 1;
  Barrier* barrier = nullptr;
  double fixed_share = 1;  // of loops that are shared out with share_out()

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

  /// Calls f(loop, begin, end) for parts of the loops 0 to n_loops - 1 of pieces_of(loop) pieces,
  /// so that all threads together do every piece once: first for this thread's fixed share of each
  /// loop, then for what nobody has claimed of the rest, so that a thread that is slow or was
  /// stopped holds up nobody else. At most once between two barriers, and not together with
  /// next_task().
  template <class PiecesOf, class F>
  void share_out(std::int64_t n_loops, const PiecesOf& pieces_of, const F& f) const {
    std::int64_t n_claims = 0;
    for (std::int64_t loop = 0; loop < n_loops; ++loop) {
      n_claims += claims(pieces_of(loop));
    }
    // With fewer claims than that, the last one would leave threads waiting for longer than it
    // saves.
    const bool has_rest = n_claims >= min_claims_each * count;
    for (std::int64_t loop = 0; loop < n_loops; ++loop) {
      const Pieces pieces = pieces_of(loop);
      const Range own = share(has_rest ? n_fixed(pieces) : pieces.n);
      if (own.begin < own.end) {
        f(loop, own.begin, own.end);
      }
    }
    if (has_rest) {
      claim_rest(n_loops, pieces_of, f);
    }
  }

  /// The number of this thread's next task, when each begins with the one of its index.
  [[nodiscard]] std::int64_t next_task() const { return count + barrier->claim(); }

 private:
  static constexpr std::int64_t min_claims_each = 2;

  [[nodiscard]] std::int64_t n_fixed(const Pieces& pieces) const {
    return static_cast<std::int64_t>(static_cast<double>(pieces.n) * fixed_share *
                                     pieces.fixed_share / count) *
           count;
  }
  /// How many claims the rest of a loop takes.
  [[nodiscard]] std::int64_t claims(const Pieces& pieces) const {
    return pieces.n == 0 || count == 1
               ? 0
               : (pieces.n - n_fixed(pieces) + pieces.at_once - 1) / pieces.at_once;
  }

  template <class PiecesOf, class F>
  void claim_rest(std::int64_t n_loops, const PiecesOf& pieces_of, const F& f) const {
    std::int64_t next = barrier->claim();
    std::int64_t first = 0;  // claim of the loop
    for (std::int64_t loop = 0; loop < n_loops; ++loop) {
      const Pieces pieces = pieces_of(loop);
      const std::int64_t end = first + claims(pieces);
      for (; next < end; next = barrier->claim()) {
        const std::int64_t begin = n_fixed(pieces) + (next - first) * pieces.at_once;
        f(loop, begin, std::min(begin + pieces.at_once, pieces.n));
      }
      first = end;
    }
  }
};

/// Of a loop's pieces, how many threads on equal cores have for themselves.
inline constexpr double equal_share = 0.875;

/// Of that share of a loop whose pieces take long: neighbours on a shared machine can make one core
/// half as fast as another.
inline constexpr double many_rows_share = 0.6;

/// Persistent threads for jobs in which every thread runs the same function and they meet at
/// barriers. The calling thread is worker 0. Idle threads spin for a few tens of microseconds, then
/// sleep. run() is for one thread at a time.
class ThreadPool {
 public:
  /// `fixed_share` is what Worker::share_out() shares out at the beginning.
  explicit ThreadPool(int n_threads, double fixed_share = equal_share);
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
  [[nodiscard]] Worker worker(int index) { return {index, n_threads_, &barrier_, fixed_share_}; }

  int n_threads_;
  double fixed_share_;
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
