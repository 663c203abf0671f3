#include "backend/cpu/thread_pool.h"

#include "base/assert.h"

namespace hearth::backend::cpu {
namespace {

// A yield after this many pauses keeps a machine with more threads than cores from stalling.
constexpr int spins_before_yield = 2000;
// About 50 microseconds of spinning between jobs, then sleep: the next step usually follows at
// once.
constexpr int spins_before_sleep = 4000;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Barrier::arrive_and_wait() {
  if (n_threads_ == 1) {
    n_claims_.store(0, std::memory_order_relaxed);
    return;
  }
  const auto generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    n_claims_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins) {
    if (spins < spins_before_yield) {
      pause_core();
    } else {
      std::this_thread::yield();
    }
  }
}

ThreadPool::ThreadPool(int n_threads, double fixed_share)
    : n_threads_(n_threads), fixed_share_(fixed_share), barrier_(n_threads) {
  HEARTH_ASSERT(n_threads >= 1);
  for (int index = 1; index < n_threads; ++index) {
    threads_.emplace_back([this, index] { work(index); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
}

void ThreadPool::run_erased(Function function, const void* context) {
  function_ = function;
  context_ = context;
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  function(context, worker(0));
  barrier_.arrive_and_wait();  // the last one: nobody still uses function_ or context_
}

void ThreadPool::work(int index) {
  std::uint32_t seen = 0;
  while (true) {
    for (int spins = 0; job_.load(std::memory_order_acquire) == seen && spins < spins_before_sleep;
         ++spins) {
      pause_core();
    }
    job_.wait(seen, std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) {
      return;
    }
    ++seen;
    function_(context_, worker(index));
    barrier_.arrive_and_wait();
  }
}

}  // namespace hearth::backend::cpu
