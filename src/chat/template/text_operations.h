#pragma once
/// Python's string operations on text with origins. Methods and filters are thin layers over these.

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "chat/template/runtime.h"

namespace hearth::chat {

enum class Side : std::uint8_t { left, right, both };

/// Without the characters of `chars` (white space when null) at the given side.
Result<Value> strip(Runtime& runtime, const Text& text, const Text* chars, Side side);

/// The pieces between separators (runs of white space when null), at most `max_splits` cuts, none
/// when negative. Cuts from the right end when `from_right`. Errors: invalid_file for an empty
/// separator.
Result<Value> split(Runtime& runtime, const Text& text, const Text* separator,
                    std::int64_t max_splits, bool from_right);

Result<Value> split_lines(Runtime& runtime, const Text& text, bool keeps_ends);

/// (before, separator, after) around the first or last match.
Result<Value> partition(Runtime& runtime, const Text& text, const Text& separator, bool from_right);

/// Replaces up to `max_count` matches, all when negative.
Result<Value> replace(Runtime& runtime, const Text& text, const Text& from, const Text& to,
                      std::int64_t max_count);

/// str() of each item of `list`, with `separator` between.
Result<Value> join(Runtime& runtime, const Text& separator, const List& list);

/// Maps each character. `map` gets the character and whether a word starts at it (no letter before
/// it).
Result<Value> map_characters(Runtime& runtime, const Text& text,
                             const std::function<char32_t(char32_t, bool)>& map);

/// The text between enough `fill` to be `width` characters long; `align` is '<', '>' or '^'.
Result<Value> pad(Runtime& runtime, const Text& text, std::int64_t width, char align,
                  const Text& fill);

/// `n` copies. Errors: out_of_memory.
Result<Value> repeat(Runtime& runtime, const Text& text, std::int64_t n);

}  // namespace hearth::chat
