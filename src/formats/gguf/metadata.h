#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "formats/gguf/place.h"
#include "formats/gguf/value.h"

namespace hearth::formats {

/// What metadata can be asked for. Integers come from any stored integer width as long as the value
/// fits, floats from f32 and f64, bools and strings only from their own type.
template <class T>
concept MetadataType =
    std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> ||
    std::same_as<T, std::uint16_t> || std::same_as<T, std::int16_t> ||
    std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t> || std::same_as<T, float> ||
    std::same_as<T, double> || std::same_as<T, bool> || std::same_as<T, std::string_view>;

/// The keys and values of a model file, in order, each key once.
/// Values read from a file are views into its bytes and live as long as they; values that are set
/// are copied in. Move-only, see clone().
class Metadata {
 public:
  struct Entry {
    std::string_view key;
    Value value;
    std::optional<std::uint64_t> offset{};  // of the key in its file, if that has it
  };

  Metadata() = default;
  /// `file` is the name that messages start with.
  explicit Metadata(std::string file) : file_(std::move(file)) {}

  /// What messages call the file; empty for metadata that was made here.
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::span<const Entry> entries() const { return entries_; }
  /// nullptr when absent. Valid until the next change.
  [[nodiscard]] const Entry* entry(std::string_view key) const;
  /// For messages about the value of a key; views into this object.
  [[nodiscard]] Place place_of(std::string_view key) const;

  /// Errors: not_found when absent, invalid_file when the stored value is not a T.
  template <MetadataType T>
  [[nodiscard]] Result<T> get(std::string_view key) const;
  /// The same, but an absent key is nullopt.
  template <MetadataType T>
  [[nodiscard]] Result<std::optional<T>> find(std::string_view key) const;

  /// Arrays, converted element by element under the same rules.
  template <MetadataType T>
  [[nodiscard]] Result<std::vector<T>> get_array(std::string_view key) const;
  template <MetadataType T>
  [[nodiscard]] Result<std::optional<std::vector<T>>> find_array(std::string_view key) const;

  /// An array of u8 or i8 as the bytes it is (tokenizer.ggml.precompiled_charsmap).
  [[nodiscard]] Result<std::optional<Bytes>> find_bytes(std::string_view key) const;

  /// Adds a key, or replaces its value in place.
  void set(std::string_view key, const Value& value);
  template <MetadataType T>
  void set_array(std::string_view key, std::span<const T> elements);
  void set_array(std::string_view key, std::span<const std::string> elements);

  /// Adds an entry whose views outlive this object; false when the key is already there.
  [[nodiscard]] bool add_borrowed(const Entry& entry);

  /// A copy that no longer depends on the file, nor names it in messages.
  [[nodiscard]] Metadata clone() const;

 private:
  Bytes keep(Bytes bytes);
  Value keep(const Value& value);
  [[nodiscard]] Failure mismatch(const Entry& entry, std::string_view expected) const;

  std::string file_;
  std::vector<Entry> entries_;
  // Ordered, so that hostile keys cannot collide as they could in a hash table.
  std::map<std::string_view, std::size_t> by_key_;
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

}  // namespace hearth::formats
