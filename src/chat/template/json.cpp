#include "chat/template/json.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "chat/template/print.h"
#include "chat/template/unicode.h"

namespace hearth::chat {
namespace {

std::string spell_number(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-Infinity" : "Infinity";
  }
  return spell_real(value);
}

std::string utf16_escape(char32_t c) {
  const auto code = static_cast<std::uint32_t>(c);
  if (code < 0x10000) {
    return format("\\u{:04x}", code);
  }
  const std::uint32_t rest = code - 0x10000;
  return format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

/// The escape of `c`, or nothing when it stands for itself.
std::string escape(char32_t c, bool ascii_only) {
  switch (c) {
    case U'"':
      return "\\\"";
    case U'\\':
      return "\\\\";
    case U'\n':
      return "\\n";
    case U'\r':
      return "\\r";
    case U'\t':
      return "\\t";
    case U'\b':
      return "\\b";
    case U'\f':
      return "\\f";
    default:
      return c < 0x20 || (ascii_only && c > 0x7E) ? utf16_escape(c) : "";
  }
}

/// Walks one value and keeps the current indentation.
class JsonWriter {
 public:
  JsonWriter(TextWriter& out, const JsonStyle& style) : out_(out), style_(style) {}

  Result<void> write(const Value& value) {
    const Text* text = value.as_text();
    HEARTH_TRY(out_.spend_value(text ? text->size() : 0));
    if (text) {
      return write_text(*text);
    }
    if (const List* list = value.as_list(); list && list->is_indexed()) {
      return write_list(*list);
    }
    if (const Dict* dict = value.as_dict()) {
      return write_dict(*dict);
    }
    if (value.is_undefined() || value.as_object() || value.as_list()) {
      return fail(ErrorCode::invalid_file, "tojson: a value of type {} has no JSON form",
                  value.type_name());
    }
    return out_.append(spell_scalar(value), value.origin());
  }

 private:
  static std::string spell_scalar(const Value& value) {
    if (const auto* b = value.as_bool()) {
      return *b ? "true" : "false";
    }
    if (const auto* i = value.as_integer()) {
      return std::to_string(*i);
    }
    const auto* d = value.as_real();
    return d ? spell_number(*d) : "null";
  }

  Result<void> punctuation(std::string_view bytes) { return out_.append(bytes, Origin::untrusted); }

  Result<void> write_text(const Text& text) {
    const std::string_view bytes = text.bytes();
    HEARTH_TRY(punctuation("\""));
    std::size_t copied = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      if (const std::string escaped = escape(c.value, style_.ascii_only); !escaped.empty()) {
        HEARTH_TRY(out_.append(text, copied, at));
        HEARTH_TRY(out_.append(escaped, text.origin_at(at)));
        copied = at + c.n_bytes;
      }
      at += c.n_bytes;
    }
    HEARTH_TRY(out_.append(text, copied, bytes.size()));
    return punctuation("\"");
  }

  Result<void> write_key(const Value& key) {
    if (const Text* text = key.as_text()) {
      return write_text(*text);
    }
    return write_text(Text(spell_scalar(key), key.origin()));
  }

  /// Before an item: the separator unless it is the first, and the line break when there is
  /// indentation.
  Result<void> begin_item(bool is_first) {
    if (!is_first) {
      HEARTH_TRY(punctuation(style_.item_separator));
    }
    return begin_line();
  }

  Result<void> begin_line() {
    if (style_.indent) {
      HEARTH_TRY(punctuation("\n"));
      for (int i = 0; i < depth_; ++i) {
        HEARTH_TRY(punctuation(*style_.indent));
      }
    }
    return {};
  }

  Result<void> write_list(const List& list) {
    if (list.items.empty()) {
      return punctuation("[]");
    }
    HEARTH_TRY(punctuation("["));
    ++depth_;
    for (const Value& item : list.items) {
      HEARTH_TRY(begin_item(&item == &list.items.front()));
      HEARTH_TRY(write(item));
    }
    --depth_;
    HEARTH_TRY(begin_line());
    return punctuation("]");
  }

  Result<void> write_dict(const Dict& dict) {
    if (dict.empty()) {
      return punctuation("{}");
    }
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sort_keys) {
      HEARTH_TRY(sort_by_key(entries));
    }
    HEARTH_TRY(punctuation("{"));
    ++depth_;
    for (const auto& entry : entries) {
      HEARTH_TRY(begin_item(&entry == &entries.front()));
      HEARTH_TRY(write_key(entry.first));
      HEARTH_TRY(punctuation(style_.key_separator));
      HEARTH_TRY(write(entry.second));
    }
    --depth_;
    HEARTH_TRY(begin_line());
    return punctuation("}");
  }

  static Result<void> sort_by_key(std::vector<Dict::Entry>& entries) {
    for (const auto& [key, value] : entries) {
      if (!key.is_string()) {
        return fail(ErrorCode::invalid_file, "tojson: sort_keys needs string keys, found {}",
                    key.type_name());
      }
    }
    std::sort(entries.begin(), entries.end(), [](const Dict::Entry& a, const Dict::Entry& b) {
      return a.first.as_text()->bytes() < b.first.as_text()->bytes();
    });
    return {};
  }

  TextWriter& out_;
  const JsonStyle& style_;
  int depth_ = 0;
};

}  // namespace

Result<void> write_json(TextWriter& out, const Value& value, const JsonStyle& style) {
  return JsonWriter(out, style).write(value);
}

}  // namespace hearth::chat
