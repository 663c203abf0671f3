#pragma once
/// Results: what a user, a file or a peer can cause is a value, never an exception.

#include <string>
#include <utility>

#ifdef HEARTH_STD_FORMAT_AND_EXPECTED
#include <expected>
#else
#include <tl/expected.hpp>
#endif

namespace hearth {

enum class ErrorCode {
  invalid_argument,  // the caller asked for something that cannot be
  invalid_file,      // the bytes of a file break its format
  not_found,         // no such file, model, tensor or key
  unsupported,       // well-formed, but nothing here can handle it
  out_of_memory,     // a budget or the machine's memory is exhausted
  io,                // the operating system refused
  cancelled,         // somebody asked to stop
  internal,          // a computation went wrong (NaN logits)
};

struct Error {
  ErrorCode code{};
  std::string
      message;  // a sentence that names the file, tensor or field, what was expected and what came

  bool operator==(const Error&) const = default;
};

#ifdef HEARTH_STD_FORMAT_AND_EXPECTED
template <class T>
using Result = std::expected<T, Error>;
using Failure = std::unexpected<Error>;
#else
template <class T>
using Result = tl::expected<T, Error>;
using Failure = tl::unexpected<Error>;
#endif

}  // namespace hearth

#define HEARTH_CONCAT_INNER(a, b) a##b
#define HEARTH_CONCAT(a, b) HEARTH_CONCAT_INNER(a, b)

/// Returns the error of `expression` (a Result) from the enclosing function, or goes on.
#define HEARTH_TRY(expression)                                    \
  do {                                                            \
    if (auto hearth_result = (expression); !hearth_result) {      \
      return ::hearth::Failure(std::move(hearth_result).error()); \
    }                                                             \
  } while (false)

/// `HEARTH_ASSIGN(auto x, f())`: x is the value of f(), or the enclosing function returns f()'s
/// error.
#define HEARTH_ASSIGN(declaration, expression) \
  HEARTH_ASSIGN_NAMED(declaration, expression, HEARTH_CONCAT(hearth_result_, __LINE__))
#define HEARTH_ASSIGN_NAMED(declaration, expression, name) \
  auto name = (expression);                                \
  if (!name) {                                             \
    return ::hearth::Failure(std::move(name).error());     \
  }                                                        \
  declaration = std::move(*name)
