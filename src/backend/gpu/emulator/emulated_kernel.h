#pragma once
/// How KERNEL (dialect/emulator.h) describes a kernel: everything comes from its own text.

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "backend/gpu/emulator/checked_pointer.h"
#include "backend/gpu/host/kernel_info.h"

namespace hearth::backend::gpu::emulator {

struct Position;

/// A kernel that can be emulated.
struct EmulatedKernel {
  KernelInfo info;
  /// Runs the kernel's text as the current lane.
  void (*run)(const MemoryRange* buffers, const std::byte* params, const Position& position);
  bool is_early = false;  // an EARLY_KERNEL
};

namespace detail {

constexpr bool is_in_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The text of one parameter: up to a comma that stands in no brackets.
constexpr std::string_view first_parameter(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += c == '(' || c == '<' ? 1 : 0;
    depth -= c == ')' || c == '>' ? 1 : 0;
    if (c == ',' && depth == 0) {
      return text.substr(0, i);
    }
  }
  return text;
}

/// "BUFFER(0, const f32, x)" -> "x", and "Pointer<const f32> x" -> "x"
constexpr std::string_view last_name(std::string_view parameter) {
  std::size_t end = parameter.size();
  while (end > 0 && !is_in_name(parameter[end - 1])) {
    --end;
  }
  std::size_t begin = end;
  while (begin > 0 && is_in_name(parameter[begin - 1])) {
    --begin;
  }
  return parameter.substr(begin, end - begin);
}

template <class Pointer>
inline constexpr bool is_written = false;
template <class T>
inline constexpr bool is_written<DevicePointer<T>> = !std::is_const_v<T>;

/// A kernel's function: pointers to its buffers, its parameters, the position.
template <class Function>
struct Signature;
template <class... All>
struct Signature<void (*)(All...)> {
  static constexpr std::size_t n_buffers = sizeof...(All) - 2;
  template <std::size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<All...>>;
  using Params = std::remove_cvref_t<Argument<n_buffers>>;
};

template <auto function, std::size_t... i>
void call(const MemoryRange* buffers, const std::byte* params, const Position& position,
          std::index_sequence<i...> /*indices*/) {
  using S = Signature<decltype(function)>;
  function(typename S::template Argument<i>(buffers[i], 0)...,
           *reinterpret_cast<const typename S::Params*>(params), position);
}

}  // namespace detail

/// `parameters` is the text of the kernel's BUFFER(...) list, for the names.
template <auto function>
constexpr EmulatedKernel describe_kernel(std::string_view name, std::uint32_t max_threads,
                                         std::string_view parameters, bool is_early) {
  using S = detail::Signature<decltype(function)>;
  using Indices = std::make_index_sequence<S::n_buffers>;
  static_assert(S::n_buffers <= max_kernel_buffers);
  static_assert(std::is_trivially_copyable_v<typename S::Params> &&
                sizeof(typename S::Params) <= max_param_bytes && alignof(typename S::Params) <= 8);
  EmulatedKernel kernel{
      .info = {.name = name,
               .max_threads = max_threads,
               .param_bytes = sizeof(typename S::Params),
               .n_buffers = S::n_buffers},
      .run =
          [](const MemoryRange* buffers, const std::byte* params, const Position& position) {
            detail::call<function>(buffers, params, position, Indices());
          },
      .is_early = is_early};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((kernel.info.buffer_list[i].written = detail::is_written<typename S::template Argument<i>>),
     ...);
  }(Indices());
  for (std::size_t i = 0; i < S::n_buffers; ++i) {
    const std::string_view parameter = detail::first_parameter(parameters);
    kernel.info.buffer_list[i].name = detail::last_name(parameter);
    parameters.remove_prefix(parameter.size() + (parameter.size() < parameters.size() ? 1 : 0));
  }
  return kernel;
}

}  // namespace hearth::backend::gpu::emulator
