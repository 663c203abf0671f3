#pragma once
/// Metal without a Mac: its memory is the host's, and its kernels run in the emulator. Work runs
/// when it is committed, encoder after encoder; what is between two barriers runs backwards, so a
/// barrier that is missing shows.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "backend/gpu/emulator/emulator.h"
#include "tests/backend/gpu/metal/fake_runtime.h"

namespace hearth::backend::gpu::metal {

/// What Metal is asked to do wrong, and what it has seen. One at a time.
struct FakeMetal {
  FakeMetal();
  ~FakeMetal();
  FakeMetal(const FakeMetal&) = delete;
  FakeMetal& operator=(const FakeMetal&) = delete;

  [[nodiscard]] static Runtime runtime();
  /// A macOS without residency sets.
  void become_macos_14();

  bool has_gpu = true;
  bool is_old = false;          // the GPU
  std::string library_refusal;  // by the compiler; empty: it compiles
  std::string kernel_refusal;
  bool has_empty_library = false;
  std::uint64_t memory_bytes = 1 << 20;
  std::uint64_t largest_buffer = 1 << 19;
  std::uint64_t most_threads = 1024;  // of a pipeline
  bool gives_command_buffers = true;
  std::deque<Integer> errors;  // of the next command buffers; 0: none
  int n_busy_queries = 0;      // work is done at that one

  std::uint64_t allocated_bytes = 0;
  int n_commits = 0;
  int n_residency_requests = 0;
  std::string source;                 // of the library
  std::vector<std::string> launched;  // kernels, in the order in which they were encoded
  std::set<Object> resident;
  std::set<Object> resident_once_committed;
  emulator::Emulator emulator{{}};
  FakeRuntime objects;
};

}  // namespace hearth::backend::gpu::metal
