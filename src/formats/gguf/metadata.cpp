#include "formats/gguf/metadata.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace hearth::formats {
namespace {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

/// nullopt when a From is no T, or its value does not fit.
template <class T, class From>
std::optional<T> convert(const From& from) {
  if constexpr (std::is_same_v<T, From>) {
    return from;
  } else if constexpr (Integer<T> && Integer<From>) {
    return std::in_range<T>(from) ? std::optional(static_cast<T>(from)) : std::nullopt;
  } else if constexpr (std::floating_point<T> && std::floating_point<From>) {
    const bool fits = !std::isfinite(from) || std::abs(from) <= std::numeric_limits<T>::max();
    return fits ? std::optional(static_cast<T>(from)) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

template <class T>
std::string expected_name() {
  if constexpr (Integer<T>) {
    return format("an integer from {} to {}", std::numeric_limits<T>::min(),
                  std::numeric_limits<T>::max());
  } else if constexpr (std::is_same_v<T, float>) {
    return "a floating-point number in the range of f32";
  } else if constexpr (std::is_same_v<T, double>) {
    return "a floating-point number";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "a bool";
  } else {
    return "a string";
  }
}

/// Splits stored strings; they were checked when the array was made.
std::vector<std::string_view> split_strings(const Array& array) {
  std::vector<std::string_view> strings;
  strings.reserve(array.count);
  const auto* at = array.bytes.data();
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const auto length = load<std::uint64_t>(at);
    strings.emplace_back(reinterpret_cast<const char*>(at + sizeof length), length);
    at += sizeof length + length;
  }
  return strings;
}

/// Appends converted elements; the index of the first that is no T, or nullopt.
template <class T>
std::optional<std::uint64_t> convert_elements(const Array& array, std::vector<T>& out) {
  return with_number_type(
      array.element_type, [&]<class From>(From) -> std::optional<std::uint64_t> {
        for (std::uint64_t i = 0; i < array.count; ++i) {
          const auto element = convert<T>(load<From>(array.bytes.data(), i * sizeof(From)));
          if (!element) {
            return i;
          }
          out.push_back(*element);
        }
        return std::nullopt;
      });
}

void append(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class String>
std::vector<std::byte> encode_strings(std::span<const String> strings) {
  std::vector<std::byte> encoded;
  for (const std::string_view text : strings) {
    const std::uint64_t length = text.size();
    append(encoded, std::as_bytes(std::span(&length, 1)));
    append(encoded, std::as_bytes(std::span(text)));
  }
  return encoded;
}

}  // namespace

const Metadata::Entry* Metadata::entry(std::string_view key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &entries_[found->second];
}

Place Metadata::place_of(std::string_view key) const {
  const Entry* found = entry(key);
  return {file_, "key", key, found == nullptr ? std::nullopt : found->offset};
}

Failure Metadata::mismatch(const Entry& entry, std::string_view expected) const {
  return invalid(place_of(entry.key), "expected {}, found {}", expected, describe(entry.value));
}

template <MetadataType T>
Result<std::optional<T>> Metadata::find(std::string_view key) const {
  const Entry* found = entry(key);
  if (found == nullptr) {
    return std::optional<T>();
  }
  auto value = std::visit([](const auto& held) { return convert<T>(held); }, found->value);
  if (!value) {
    return mismatch(*found, expected_name<T>());
  }
  return value;
}

template <MetadataType T>
Result<std::optional<std::vector<T>>> Metadata::find_array(std::string_view key) const {
  const Entry* found = entry(key);
  if (found == nullptr) {
    return std::optional<std::vector<T>>();
  }
  const auto* array = std::get_if<Array>(&found->value);
  const bool wants_strings = std::is_same_v<T, std::string_view>;
  if (array == nullptr || (array->element_type == ValueType::string) != wants_strings) {
    return mismatch(*found, "an array, each element " + expected_name<T>());
  }
  if constexpr (wants_strings) {
    return std::optional(split_strings(*array));
  } else {
    std::vector<T> elements;
    elements.reserve(array->count);
    if (const auto bad = convert_elements(*array, elements)) {
      return mismatch(*found, format("element {} to be {}", *bad, expected_name<T>()));
    }
    return std::optional(std::move(elements));
  }
}

namespace {

/// The value, or the error that nothing is there.
template <class T>
Result<T> require(Result<std::optional<T>> found, std::string_view file, std::string_view key,
                  std::string_view expected) {
  if (!found) {
    return Failure(std::move(found).error());
  }
  if (!*found) {
    return fail(ErrorCode::not_found, "{}{}key {}: expected {}, found no such key", file,
                file.empty() ? "" : ": ", in_quotes(key), expected);
  }
  return std::move(**found);
}

}  // namespace

template <MetadataType T>
Result<T> Metadata::get(std::string_view key) const {
  return require(find<T>(key), file_, key, expected_name<T>());
}

template <MetadataType T>
Result<std::vector<T>> Metadata::get_array(std::string_view key) const {
  return require(find_array<T>(key), file_, key, "an array, each element " + expected_name<T>());
}

Result<std::optional<Bytes>> Metadata::find_bytes(std::string_view key) const {
  const Entry* found = entry(key);
  if (found == nullptr) {
    return std::optional<Bytes>();
  }
  const auto* array = std::get_if<Array>(&found->value);
  if (array == nullptr ||
      (array->element_type != ValueType::u8 && array->element_type != ValueType::i8)) {
    return mismatch(*found, "an array of u8 or i8");
  }
  return std::optional(array->bytes);
}

Bytes Metadata::keep(Bytes bytes) {
  auto& copy = kept_.emplace_back(std::make_unique<std::byte[]>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return {copy.get(), bytes.size()};
}

Value Metadata::keep(const Value& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    const Bytes kept = keep(std::as_bytes(std::span(*text)));
    return std::string_view(reinterpret_cast<const char*>(kept.data()), kept.size());
  }
  if (const auto* array = std::get_if<Array>(&value)) {
    return Array{array->element_type, array->count, keep(array->bytes)};
  }
  return value;
}

void Metadata::set(std::string_view key, const Value& value) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_[found->second].value = keep(value);
    return;
  }
  const auto kept_key = std::get<std::string_view>(keep(Value(key)));
  by_key_.emplace(kept_key, entries_.size());
  entries_.push_back({kept_key, keep(value)});
}

template <MetadataType T>
void Metadata::set_array(std::string_view key, std::span<const T> elements) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    set(key, Array{ValueType::string, elements.size(), encode_strings(elements)});
  } else {
    set(key, Array{value_type_of<T>, elements.size(), std::as_bytes(elements)});
  }
}

void Metadata::set_array(std::string_view key, std::span<const std::string> elements) {
  set(key, Array{ValueType::string, elements.size(), encode_strings(elements)});
}

bool Metadata::add_borrowed(const Entry& entry) {
  if (!by_key_.emplace(entry.key, entries_.size()).second) {
    return false;
  }
  entries_.push_back(entry);
  return true;
}

Metadata Metadata::clone() const {
  Metadata copy;
  for (const Entry& entry : entries_) {
    copy.set(entry.key, entry.value);
  }
  return copy;
}

#define HEARTH_METADATA_TYPE(T)                                                                   \
  template Result<T> Metadata::get<T>(std::string_view) const;                                    \
  template Result<std::optional<T>> Metadata::find<T>(std::string_view) const;                    \
  template Result<std::vector<T>> Metadata::get_array<T>(std::string_view) const;                 \
  template Result<std::optional<std::vector<T>>> Metadata::find_array<T>(std::string_view) const; \
  template void Metadata::set_array<T>(std::string_view, std::span<const T>);
HEARTH_METADATA_TYPE(std::uint8_t)
HEARTH_METADATA_TYPE(std::int8_t)
HEARTH_METADATA_TYPE(std::uint16_t)
HEARTH_METADATA_TYPE(std::int16_t)
HEARTH_METADATA_TYPE(std::uint32_t)
HEARTH_METADATA_TYPE(std::int32_t)
HEARTH_METADATA_TYPE(std::uint64_t)
HEARTH_METADATA_TYPE(std::int64_t)
HEARTH_METADATA_TYPE(float)
HEARTH_METADATA_TYPE(double)
HEARTH_METADATA_TYPE(bool)
HEARTH_METADATA_TYPE(std::string_view)
#undef HEARTH_METADATA_TYPE

}  // namespace hearth::formats
