/// Filters that make text: Jinja's, and transformers' own tojson.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/fail.h"
#include "chat/template/argument_types.h"
#include "chat/template/filters.h"
#include "chat/template/formatting.h"
#include "chat/template/html.h"
#include "chat/template/json.h"
#include "chat/template/print.h"
#include "chat/template/sequence.h"
#include "chat/template/text_methods.h"
#include "chat/template/text_operations.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

using TextOperation = Result<Value> (*)(Runtime&, const Text&);

/// A filter without arguments on str(subject).
template <TextOperation operation>
Result<Value> on_text(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("this filter", arguments, {}));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  return operation(runtime, *text.as_text());
}

Result<Value> string_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("string", arguments, {}));
  return to_string(runtime, subject);
}

Result<Value> trim_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("trim", arguments, {"chars"}));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  HEARTH_ASSIGN(const Text* chars, optional_text(bound[0]));
  return strip(runtime, *text.as_text(), chars, Side::both);
}

Result<Value> replace_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("replace", arguments, {"old", "new", "count"}, 2));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  HEARTH_ASSIGN(const Value from, to_string(runtime, bound[0]));
  HEARTH_ASSIGN(const Value to, to_string(runtime, bound[1]));
  HEARTH_ASSIGN(const auto max_count, integer_or(bound[2].is_none() ? Value(-1) : bound[2], -1));
  return replace(runtime, *text.as_text(), *from.as_text(), *to.as_text(), max_count);
}

Result<Value> center_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("center", arguments, {"width"}));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  HEARTH_ASSIGN(const auto width, integer_or(bound[0], 80));
  return pad(runtime, *text.as_text(), width, '^', Text(" ", Origin::trusted));
}

Result<Value> format_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  if (arguments.keyword.empty()) {
    return format_percent(runtime, *text.as_text(), Value::tuple(arguments.positional));
  }
  if (!arguments.positional.empty()) {
    return fail(ErrorCode::invalid_file, "format: positional and keyword values do not mix");
  }
  Dict values;
  for (const auto& [name, value] : arguments.keyword) {
    values.set(name, value);
  }
  return format_percent(runtime, *text.as_text(), Value(std::move(values)));
}

Result<Text> indentation(Runtime& runtime, const Value& width) {
  if (const Text* text = width.as_text()) {
    return *text;
  }
  HEARTH_ASSIGN(const auto n, integer_or(width, 4));
  HEARTH_ASSIGN(const Value spaces, repeat(runtime, Text(" ", Origin::trusted), n));
  return *spaces.as_text();
}

Result<Value> indent_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound, bind_arguments("indent", arguments, {"width", "first", "blank"}));
  HEARTH_ASSIGN(const Text* text, text_of(subject));
  HEARTH_ASSIGN(const Text indent, indentation(runtime, bound[0]));
  const bool indents_first = truth_or(bound[1], false);
  const bool indents_blank = truth_or(bound[2], false);
  HEARTH_ASSIGN(const Value lines, split_lines(runtime, *text, false));
  // A final line break begins one more, empty line.
  std::vector<Value> items = lines.as_list()->items;
  if (text->empty() || text->bytes().ends_with('\n')) {
    items.emplace_back(Text());
  }
  TextWriter out(runtime.budget());
  bool is_first = true;
  for (const Value& line : items) {
    if (!is_first) {
      HEARTH_TRY(out.append("\n", Origin::trusted));
    }
    const bool is_indented = is_first ? indents_first : indents_blank || !line.as_text()->empty();
    if (is_indented) {
      HEARTH_TRY(out.append(indent));
    }
    HEARTH_TRY(out.append(*line.as_text()));
    is_first = false;
  }
  return out.take_value();
}

Result<Value> truncate_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(const auto bound,
                bind_arguments("truncate", arguments, {"length", "killwords", "end", "leeway"}));
  HEARTH_ASSIGN(const Text* text, text_of(subject));
  HEARTH_ASSIGN(const auto max_length, integer_or(bound[0], 255));
  HEARTH_ASSIGN(const Text* given_end, optional_text(bound[2]));
  HEARTH_ASSIGN(const auto leeway, integer_or(bound[3].is_none() ? Value(5) : bound[3], 5));
  const Text end = given_end ? *given_end : Text("...", Origin::trusted);
  const auto n_end = static_cast<std::int64_t>(count_code_points(end.bytes()));
  const auto n = static_cast<std::int64_t>(count_code_points(text->bytes()));
  if (max_length < n_end || leeway < 0) {
    return fail(ErrorCode::invalid_file, "truncate: the length {} is shorter than the end mark",
                max_length);
  }
  if (n <= max_length || n - max_length <= leeway) {
    return subject;
  }
  std::size_t cut = byte_offset(text->bytes(), static_cast<std::size_t>(max_length - n_end));
  if (!truth_or(bound[1], false)) {
    const std::size_t space = text->bytes().substr(0, cut).rfind(' ');
    cut = space == std::string_view::npos ? cut : space;
  }
  TextWriter out(runtime.budget());
  HEARTH_TRY(out.append(*text, 0, cut));
  HEARTH_TRY(out.append(end));
  return out.take_value();
}

Result<std::optional<std::string>> json_indent(const Value& indent) {
  if (indent.is_undefined() || indent.is_none()) {
    return std::nullopt;
  }
  if (const Text* text = indent.as_text()) {
    return std::string(text->bytes());
  }
  HEARTH_ASSIGN(const auto n, integer_or(indent, 0));
  constexpr std::int64_t max_indent = 100;
  if (n > max_indent) {
    return fail(ErrorCode::invalid_file, "tojson: an indent of {} is more than {}", n, max_indent);
  }
  return std::string(static_cast<std::size_t>(std::max(n, std::int64_t{0})), ' ');
}

/// tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False), as transformers
/// defines it.
Result<Value> tojson_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_ASSIGN(
      const auto bound,
      bind_arguments("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ascii_only = truth_or(bound[0], false);
  style.sort_keys = truth_or(bound[3], false);
  HEARTH_ASSIGN(style.indent, json_indent(bound[1]));
  if (style.indent) {
    style.item_separator = ",";
  }
  if (!bound[2].is_undefined() && !bound[2].is_none()) {
    const List* separators = bound[2].as_list();
    if (!separators || separators->items.size() != 2) {
      return fail(ErrorCode::invalid_file, "tojson: separators must be two strings");
    }
    HEARTH_ASSIGN(const Text* item_separator, text_of(separators->items[0]));
    HEARTH_ASSIGN(const Text* key_separator, text_of(separators->items[1]));
    style.item_separator = item_separator->bytes();
    style.key_separator = key_separator->bytes();
  }
  TextWriter out(runtime.budget());
  HEARTH_TRY(write_json(out, subject, style));
  return out.take_value();
}

Result<Value> safe_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("safe", arguments, {}));
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  return text.as_markup();
}

Result<Value> escape_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  HEARTH_TRY(bind_arguments("escape", arguments, {}));
  if (subject.is_markup()) {
    return subject;
  }
  HEARTH_ASSIGN(const Value text, to_string(runtime, subject));
  return escape_html(runtime, *text.as_text());
}

/// Jinja's own title(): words begin after spaces, hyphens and opening brackets.
Result<Value> title_words(Runtime& runtime, const Text& text) {
  bool starts_word = true;
  return map_characters(runtime, text, [&starts_word](char32_t c, bool) {
    constexpr std::u32string_view openers = U"-({[<";
    const bool starts = starts_word;
    starts_word = is_space(c) || openers.find(c) != std::u32string_view::npos;
    return starts ? to_upper(c) : to_lower(c);
  });
}

constexpr std::array text_filters{
    NamedFilter{"upper", on_text<upper>},
    NamedFilter{"lower", on_text<lower>},
    NamedFilter{"title", on_text<title_words>},
    NamedFilter{"capitalize", on_text<capitalize>},
    NamedFilter{"string", string_filter},
    NamedFilter{"trim", trim_filter},
    NamedFilter{"replace", replace_filter},
    NamedFilter{"center", center_filter},
    NamedFilter{"format", format_filter},
    NamedFilter{"indent", indent_filter},
    NamedFilter{"truncate", truncate_filter},
    NamedFilter{"tojson", tojson_filter},
    NamedFilter{"safe", safe_filter},
    NamedFilter{"escape", escape_filter},
    NamedFilter{"e", escape_filter},
};

}  // namespace

Filter find_text_filter(std::string_view name) {
  return find_in(text_filters, name);
}

}  // namespace hearth::chat
