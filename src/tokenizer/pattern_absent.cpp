// Chosen by CMake where PCRE2 is not installed.

#include "base/assert.h"
#include "base/fail.h"
#include "tokenizer/pattern.h"

namespace hearth::tokenizer {

struct Pattern::Compiled {};

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&& other) noexcept = default;
Pattern& Pattern::operator=(Pattern&& other) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::create(std::string_view) {
  return fail(ErrorCode::unsupported,
              "this build has no PCRE2, which the pre-tokenizer patterns of byte-pair vocabularies "
              "need (Debian and Ubuntu: libpcre2-dev)");
}

Result<std::vector<std::uint32_t>> Pattern::cut(std::string_view,
                                                std::span<const std::uint32_t>) const {
  HEARTH_ASSERT(false && "no Pattern can exist in this build");
  return {};
}

}  // namespace hearth::tokenizer
