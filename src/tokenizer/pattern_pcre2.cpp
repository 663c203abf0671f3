#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <pcre2.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "tokenizer/pattern.h"

namespace hearth::tokenizer {
namespace {

/// Unicode White_Space as the inside of a character class. PCRE2's own `\s` also has U+180E, which
/// is no white space since Unicode 6.3.
constexpr std::string_view white_space =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

/// Spells out `\s`, inside and outside of classes, and `\S` outside of them.
std::string spell_out_white_space(std::string_view expression) {
  std::string spelled;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c != '\\' || i + 1 == expression.size()) {
      in_class = in_class ? c != ']' : c == '[';
      spelled.push_back(c);
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's') {
      spelled.append(in_class ? std::string(white_space) : format("[{}]", white_space));
    } else if (escaped == 'S' && !in_class) {
      spelled.append(format("[^{}]", white_space));
    } else {
      spelled.append({c, escaped});
    }
  }
  return spelled;
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 160> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return {buffer.begin(), std::find(buffer.begin(), buffer.end(), PCRE2_UCHAR{0})};
}

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Release<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Release<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Release<pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack_free>>;

/// What one thread needs for matching, with limits that no published pattern comes near.
class Matcher {
 public:
  explicit Matcher(const pcre2_code* code)
      : code_(code),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(jit_stack_min_bytes, jit_stack_max_bytes, nullptr)) {
    HEARTH_ASSERT(data_ != nullptr && context_ != nullptr);  // null only when memory is exhausted
    pcre2_set_match_limit(context_.get(), max_steps);
    pcre2_set_heap_limit(context_.get(), max_heap_kib);
    if (stack_ != nullptr) {
      pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
    }
  }

  struct Match {
    std::size_t begin;
    std::size_t end;
  };

  /// The first match at or after `from`; begin == end == piece.size() when there is none.
  Result<Match> find(std::string_view piece, std::size_t from) {
    // Skipping the check is right: pieces are cut from text that is already known to be UTF-8.
    const int found = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(piece.data()), piece.size(),
                                  from, PCRE2_NO_UTF_CHECK, data_.get(), context_.get());
    if (found == PCRE2_ERROR_NOMATCH) {
      return Match{piece.size(), piece.size()};
    }
    if (found < 0) {
      return fail(ErrorCode::invalid_argument,
                  "splitting a text of {} bytes into words failed at byte {}: {}", piece.size(),
                  from, message_of(found));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_.get());
    return Match{ends[0], ends[1]};
  }

 private:
  static constexpr std::size_t jit_stack_min_bytes = std::size_t{32} << 10;
  static constexpr std::size_t jit_stack_max_bytes = std::size_t{1} << 20;
  static constexpr std::uint32_t max_steps = 10'000'000;
  static constexpr std::uint32_t max_heap_kib = 64 * 1024;

  const pcre2_code* code_;
  MatchData data_;
  MatchContext context_;
  JitStack stack_;
};

}  // namespace

struct Pattern::Compiled {
  Code code;
};

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&& other) noexcept = default;
Pattern& Pattern::operator=(Pattern&& other) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::create(std::string_view expression) {
  const std::string spelled = spell_out_white_space(expression);
  int error = 0;
  PCRE2_SIZE place = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place,
                          nullptr));
  if (code == nullptr) {
    return fail(ErrorCode::invalid_argument, "the pattern {} is malformed at byte {}: {}", spelled,
                place, message_of(error));
  }
  // Where just-in-time compilation is not available, pcre2_match interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Pattern(std::make_unique<Compiled>(std::move(code)));
}

Result<std::vector<std::uint32_t>> Pattern::cut(std::string_view text,
                                                std::span<const std::uint32_t> lengths) const {
  Matcher matcher(compiled_->code.get());
  std::vector<std::uint32_t> finer;
  finer.reserve(lengths.size());
  const auto add = [&finer](std::size_t length) {
    if (length > 0) {
      finer.push_back(static_cast<std::uint32_t>(length));
    }
  };
  for (const std::uint32_t length : lengths) {
    const std::string_view piece = text.substr(0, length);
    text.remove_prefix(length);
    std::size_t done = 0;  // everything before is in `finer`
    std::size_t from = 0;
    while (from < piece.size()) {
      HEARTH_ASSIGN(const Matcher::Match match, matcher.find(piece, from));
      if (match.begin == match.end && match.end < piece.size()) {  // empty: look further on
        from = match.end + decode_utf8(piece.substr(match.end)).n_bytes;
        continue;
      }
      add(match.begin - done);
      add(match.end - match.begin);
      done = from = match.end;
    }
    add(piece.size() - done);
  }
  return finer;
}

}  // namespace hearth::tokenizer
