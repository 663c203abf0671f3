#pragma once
/// Runs a kernel as a device would, in several orders, and compares what comes out.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/dialect/scalars.h"
#include "backend/gpu/emulator/sanitizers.h"
#include "backend/gpu/host/device.h"

namespace hearth::backend::gpu {

/// One buffer of a kernel: its contents before.
using Contents = std::vector<std::byte>;

template <class T>
Contents contents(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}
/// For results: NaN until written.
inline Contents poisoned(std::size_t n_floats) {
  return Contents(n_floats * sizeof(float), std::byte{0xff});
}
template <class T>
std::vector<T> values(const Contents& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

struct KernelCall {
  KernelId kernel{};
  std::vector<Contents> buffers;
  Contents params;
  Dim3 grid;
  Dim3 group_size;
};

template <class Params>
KernelCall call(KernelId kernel, std::vector<Contents> buffers, const Params& params, Dim3 grid,
                Dim3 group_size) {
  const auto bytes = std::as_bytes(std::span(&params, 1));
  return {kernel, std::move(buffers), {bytes.begin(), bytes.end()}, grid, group_size};
}

/// The shapes to test. The thread sanitizer takes a tenth of a millisecond for every GPU thread, so
/// there it is the last one alone.
template <class Shape>
std::vector<Shape> shapes(std::initializer_list<Shape> all) {
  return emulator::has_thread_sanitizer ? std::vector<Shape>{*std::prev(all.end())}
                                        : std::vector<Shape>(all);
}

/// The first buffer of every kernel: rows of the step, logit rows, sequences.
inline Contents counts(u32 rows, u32 logit_rows = 0, u32 sequences = 0) {
  return contents(std::vector<u32>{rows, logit_rows, sequences});
}
/// What stands for a buffer that the parameters leave out.
inline Contents no_buffer() {
  return Contents(16);
}

/// The buffers after the call. Expects the same bits from every order of threads and number of
/// workers. With HEARTH_TEST_GPU=cuda in the environment it runs on that card instead.
std::vector<Contents> run_everywhere(const KernelCall& call);

/// Expects the floats of `expected`, bit by bit but for the payload of NaNs, and poison behind
/// them: what belongs to masked rows has to be left alone.
void expect_bits(const Contents& result, const std::vector<float>& expected);

/// |a - b| / |b|, Euclidean; NaN and wrong lengths give infinity. The last argument must not be
/// zero throughout.
double relative_error(const std::vector<float>& a, const std::vector<float>& b);
double relative_error(const std::vector<float>& a, const std::vector<double>& b);

/// What a sum of n products in f32 may be off by, relative to the norm of many.
double f32_tolerance(std::int64_t n);

}  // namespace hearth::backend::gpu
