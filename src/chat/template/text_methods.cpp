#include "chat/template/text_methods.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/formatting.h"
#include "chat/template/search.h"
#include "chat/template/sequence.h"
#include "chat/template/text_operations.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

template <Side side>
Result<Value> strip_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("strip", arguments, {"chars"}));
  HEARTH_ASSIGN(const Text* chars, optional_text(bound[0]));
  return strip(runtime, text, chars, side);
}

template <bool from_right>
Result<Value> split_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("split", arguments, {"sep", "maxsplit"}));
  HEARTH_ASSIGN(const Text* separator, optional_text(bound[0]));
  HEARTH_ASSIGN(const auto max_splits, integer_or(bound[1], -1));
  return split(runtime, text, separator, max_splits, from_right);
}

Result<Value> split_lines_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("splitlines", arguments, {"keepends"}));
  return split_lines(runtime, text, truth_or(bound[0], false));
}

template <bool from_right>
Result<Value> partition_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("partition", arguments, {"sep"}, 1));
  HEARTH_ASSIGN(const Text* separator, text_of(bound[0]));
  return partition(runtime, text, *separator, from_right);
}

Result<Value> replace_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("replace", arguments, {"old", "new", "count"}, 2));
  HEARTH_ASSIGN(const Text* from, text_of(bound[0]));
  HEARTH_ASSIGN(const Text* to, text_of(bound[1]));
  HEARTH_ASSIGN(const auto max_count, integer_or(bound[2], -1));
  return replace(runtime, text, *from, *to, max_count);
}

Result<Value> join_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("join", arguments, {"iterable"}, 1));
  HEARTH_ASSIGN(const Value list, to_list(runtime, bound[0]));
  for (const Value& item : list.as_list()->items) {
    HEARTH_TRY(text_of(item));
  }
  return join(runtime, text, *list.as_list());
}

Result<Value> format_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  return format_braces(runtime, text, arguments);
}

/// The part of `text` that the arguments "start" and "end" select, in bytes.
struct ByteRange {
  std::size_t begin;
  std::size_t end;
};

Result<ByteRange> byte_range(Runtime& runtime, const Text& text, const Value& start,
                             const Value& stop) {
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  const auto n = static_cast<std::int64_t>(count_code_points(text.bytes()));
  HEARTH_ASSIGN(const auto first, integer_or(start.is_none() ? Value(0) : start, 0));
  HEARTH_ASSIGN(const auto last, integer_or(stop.is_none() ? Value(n) : stop, n));
  const auto place = [n](std::int64_t at) {
    return static_cast<std::size_t>(
        std::clamp(at < 0 ? std::max(at, -n) + n : at, std::int64_t{0}, n));
  };
  const std::size_t begin = byte_offset(text.bytes(), place(first));
  const std::size_t end = byte_offset(text.bytes(), place(last));
  return ByteRange{begin, std::max(begin, end)};
}

/// Whether `text` begins (or ends) with `affix`.
bool has_affix(std::string_view text, std::string_view affix, bool at_end) {
  return at_end ? text.ends_with(affix) : text.starts_with(affix);
}

template <bool at_end>
Result<Value> affix_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  const std::string_view name = at_end ? "endswith" : "startswith";
  HEARTH_ASSIGN(const auto bound, bind_arguments(name, arguments, {"affix", "start", "end"}, 1));
  HEARTH_ASSIGN(const auto range, byte_range(runtime, text, bound[1], bound[2]));
  const std::string_view part = text.bytes().substr(range.begin, range.end - range.begin);
  const List* candidates = bound[0].as_list();
  const std::vector<Value> one{bound[0]};
  for (const Value& candidate : candidates && candidates->is_tuple() ? candidates->items : one) {
    HEARTH_ASSIGN(const Text* affix, text_of(candidate));
    HEARTH_TRY(runtime.budget().spend_scan(affix->size()));
    if (has_affix(part, affix->bytes(), at_end)) {
      return Value::trusted(true);
    }
  }
  return Value::trusted(false);
}

template <bool at_end>
Result<Value> remove_affix_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments(at_end ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1));
  HEARTH_ASSIGN(const Text* affix, text_of(bound[0]));
  if (!has_affix(text.bytes(), affix->bytes(), at_end)) {
    return Value(text);
  }
  return at_end ? part_of(runtime, text, 0, text.size() - affix->size())
                : part_of(runtime, text, affix->size(), text.size());
}

/// The character index of a match, or -1; `index` methods fail instead.
template <bool from_right, bool must_exist>
Result<Value> find_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("find", arguments, {"sub", "start", "end"}, 1));
  HEARTH_ASSIGN(const Text* wanted, text_of(bound[0]));
  HEARTH_ASSIGN(const auto range, byte_range(runtime, text, bound[1], bound[2]));
  const std::string_view part = text.bytes().substr(range.begin, range.end - range.begin);
  const auto at = from_right ? find_last_bytes(part, wanted->bytes(), part.size())
                             : find_bytes(part, wanted->bytes(), 0);
  if (!at && must_exist) {
    return fail(ErrorCode::invalid_file, "the substring was not found");
  }
  return Value::trusted(
      at ? static_cast<std::int64_t>(count_code_points(text.bytes().substr(0, range.begin + *at)))
         : std::int64_t{-1});
}

Result<Value> count_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("count", arguments, {"sub", "start", "end"}, 1));
  HEARTH_ASSIGN(const Text* wanted, text_of(bound[0]));
  HEARTH_ASSIGN(const auto range, byte_range(runtime, text, bound[1], bound[2]));
  const std::string_view part = text.bytes().substr(range.begin, range.end - range.begin);
  if (wanted->empty()) {
    return Value::trusted(static_cast<std::int64_t>(count_code_points(part) + 1));
  }
  std::int64_t n = 0;
  for (auto at = find_bytes(part, wanted->bytes(), 0); at;
       at = find_bytes(part, wanted->bytes(), *at + wanted->size())) {
    ++n;
  }
  return Value::trusted(n);
}

template <auto operation>
Result<Value> plain(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("this method", arguments, {}));
  return operation(runtime, text);
}

Result<Value> swap_case(Runtime& runtime, const Text& text) {
  return map_characters(
      runtime, text, [](char32_t c, bool) { return to_upper(c) != c ? to_upper(c) : to_lower(c); });
}

template <char align>
Result<Value> pad_method(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("this method", arguments, {"width", "fillchar"}, 1));
  HEARTH_ASSIGN(const auto width, integer_or(bound[0], 0));
  HEARTH_ASSIGN(const Text* fill, optional_text(bound[1]));
  const Text space(" ", Origin::trusted);
  return pad(runtime, text, width, align, fill ? *fill : space);
}

Result<Value> zero_fill(Runtime& runtime, const Text& text, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("zfill", arguments, {"width"}, 1));
  HEARTH_ASSIGN(const auto width, integer_or(bound[0], 0));
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  const std::size_t n_sign = has_sign ? 1 : 0;
  const Text zero("0", Origin::trusted);
  HEARTH_ASSIGN(const Value padded, pad(runtime, text.slice(n_sign, text.size()),
                                        width - (has_sign ? 1 : 0), '>', zero));
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(text, 0, n_sign));
  HEARTH_TRY(out.append(*padded.as_text()));
  return out.take_value();
}

bool is_decimal(char32_t c) {
  return c >= U'0' && c <= U'9';
}

/// Letters of any script, roughly: beyond ASCII everything but spaces and the blocks of punctuation
/// and symbols.
bool is_letter(char32_t c) {
  if (c < 0x80) {
    return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
  }
  const bool is_latin_symbol =
      (c < 0xC0 && c != 0xAA && c != 0xB5 && c != 0xBA) || c == 0xD7 || c == 0xF7;
  const bool is_symbol_block = (c >= 0x2000 && c <= 0x2BFF) || (c >= 0x3000 && c <= 0x3004) ||
                               (c >= 0x3007 && c <= 0x3030) || (c >= 0xD800 && c <= 0xF8FF) ||
                               (c >= 0xFE00 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF20) ||
                               (c >= 0x1F000 && c <= 0x1FAFF);
  return !is_latin_symbol && !is_symbol_block;
}

bool is_letter_or_decimal(char32_t c) {
  return is_letter(c) || is_decimal(c);
}
bool is_ascii(char32_t c) {
  return c < 0x80;
}

/// Whether the text has characters and each is of the class.
template <bool (*is_member)(char32_t)>
Result<Value> all_of_class(Runtime& runtime, const Text& text) {
  HEARTH_TRY(runtime.budget().spend_scan(text.size()));
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    if (!is_member(c.value)) {
      return Value::trusted(false);
    }
    at += c.n_bytes;
  }
  return Value::trusted(!text.empty());
}

Result<Value> is_upper_method(Runtime& /*runtime*/, const Text& text) {
  return Value::trusted(is_upper(text));
}
Result<Value> is_lower_method(Runtime& /*runtime*/, const Text& text) {
  return Value::trusted(is_lower(text));
}

bool all_cased(const Text& text, char32_t (*other_case)(char32_t)) {
  bool has_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    if (other_case(c.value) != c.value) {
      return false;
    }
    has_cased = has_cased || is_cased(c.value);
    at += c.n_bytes;
  }
  return has_cased;
}

struct NamedTextMethod {
  std::string_view name;
  TextMethod method;
};

constexpr std::array methods{
    NamedTextMethod{"strip", strip_method<Side::both>},
    NamedTextMethod{"lstrip", strip_method<Side::left>},
    NamedTextMethod{"rstrip", strip_method<Side::right>},
    NamedTextMethod{"split", split_method<false>},
    NamedTextMethod{"rsplit", split_method<true>},
    NamedTextMethod{"splitlines", split_lines_method},
    NamedTextMethod{"partition", partition_method<false>},
    NamedTextMethod{"rpartition", partition_method<true>},
    NamedTextMethod{"replace", replace_method},
    NamedTextMethod{"join", join_method},
    NamedTextMethod{"format", format_method},
    NamedTextMethod{"startswith", affix_method<false>},
    NamedTextMethod{"endswith", affix_method<true>},
    NamedTextMethod{"removeprefix", remove_affix_method<false>},
    NamedTextMethod{"removesuffix", remove_affix_method<true>},
    NamedTextMethod{"find", find_method<false, false>},
    NamedTextMethod{"rfind", find_method<true, false>},
    NamedTextMethod{"index", find_method<false, true>},
    NamedTextMethod{"rindex", find_method<true, true>},
    NamedTextMethod{"count", count_method},
    NamedTextMethod{"upper", plain<upper>},
    NamedTextMethod{"lower", plain<lower>},
    NamedTextMethod{"casefold", plain<lower>},
    NamedTextMethod{"title", plain<title>},
    NamedTextMethod{"capitalize", plain<capitalize>},
    NamedTextMethod{"swapcase", plain<swap_case>},
    NamedTextMethod{"ljust", pad_method<'<'>},
    NamedTextMethod{"rjust", pad_method<'>'>},
    NamedTextMethod{"center", pad_method<'^'>},
    NamedTextMethod{"zfill", zero_fill},
    NamedTextMethod{"isdigit", plain<all_of_class<is_decimal>>},
    NamedTextMethod{"isdecimal", plain<all_of_class<is_decimal>>},
    NamedTextMethod{"isnumeric", plain<all_of_class<is_decimal>>},
    NamedTextMethod{"isalpha", plain<all_of_class<is_letter>>},
    NamedTextMethod{"isalnum", plain<all_of_class<is_letter_or_decimal>>},
    NamedTextMethod{"isascii", plain<all_of_class<is_ascii>>},
    NamedTextMethod{"isspace", plain<all_of_class<is_space>>},
    NamedTextMethod{"isupper", plain<is_upper_method>},
    NamedTextMethod{"islower", plain<is_lower_method>},
};

}  // namespace

TextMethod find_text_method(std::string_view name) {
  const auto at =
      std::find_if(methods.begin(), methods.end(),
                   [name](const NamedTextMethod& method) { return method.name == name; });
  return at == methods.end() ? nullptr : at->method;
}

Result<Value> upper(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](char32_t c, bool) { return to_upper(c); });
}

Result<Value> lower(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](char32_t c, bool) { return to_lower(c); });
}

Result<Value> title(Runtime& runtime, const Text& text) {
  return map_characters(runtime, text, [](char32_t c, bool starts_word) {
    return starts_word ? to_upper(c) : to_lower(c);
  });
}

Result<Value> capitalize(Runtime& runtime, const Text& text) {
  bool is_first = true;
  return map_characters(runtime, text, [&is_first](char32_t c, bool) {
    return std::exchange(is_first, false) ? to_upper(c) : to_lower(c);
  });
}

bool is_upper(const Text& text) {
  return all_cased(text, to_upper);
}
bool is_lower(const Text& text) {
  return all_cased(text, to_lower);
}

}  // namespace hearth::chat
