#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace hearth::app {

/// `text` from a file or a model, made harmless for a terminal and for one line of a table: control
/// characters appear as \n, \t, \x1b, ill-formed UTF-8 as U+FFFD. Longer than `max_bytes`, it is
/// cut at a character and ends in "...".
std::string printable(std::string_view text,
                      std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// An answer for a terminal: as above, but line breaks and tabs stay and nothing is cut. `text` is
/// valid UTF-8.
std::string printable_answer(std::string_view text);

}  // namespace hearth::app
