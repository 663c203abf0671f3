#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace hearth::model {

/// A JSON object of a model's files, read by name and type. Borrows the document.
/// A name whose value is null counts as absent. Errors: invalid_file, naming place, name, expected
/// and found; not_found for a required name.
class JsonObject {
 public:
  /// Errors: invalid_file when `value` is no object. `place` is what messages call it: a file, or
  /// "config.json: rope_parameters".
  static Result<JsonObject> of(const nlohmann::json& value, std::string place);

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const nlohmann::json& value() const { return *object_; }

  /// nullptr when absent.
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;

  /// An integer within [low, high].
  [[nodiscard]] Result<std::optional<std::int64_t>> find_count(std::string_view name,
                                                               std::int64_t low,
                                                               std::int64_t high) const;
  [[nodiscard]] Result<std::int64_t> count(std::string_view name, std::int64_t low,
                                           std::int64_t high) const;
  /// A number in the range of f32.
  [[nodiscard]] Result<std::optional<double>> find_number(std::string_view name) const;
  [[nodiscard]] Result<double> number(std::string_view name) const;
  [[nodiscard]] Result<std::optional<bool>> find_flag(std::string_view name) const;
  /// Lives as long as the document.
  [[nodiscard]] Result<std::optional<std::string_view>> find_text(std::string_view name) const;
  [[nodiscard]] Result<std::string_view> text(std::string_view name) const;
  [[nodiscard]] Result<std::optional<JsonObject>> find_object(std::string_view name) const;
  [[nodiscard]] Result<JsonObject> object(std::string_view name) const;
  /// A list of any values.
  [[nodiscard]] Result<const nlohmann::json*> find_list(std::string_view name) const;

 private:
  JsonObject(const nlohmann::json& object, std::string place)
      : object_(&object), place_(std::move(place)) {}
  [[nodiscard]] Failure mismatch(std::string_view name, std::string_view expected) const;
  [[nodiscard]] Failure missing(std::string_view name) const;

  const nlohmann::json* object_;
  std::string place_;
};

/// What a message says was found: "the number 7", "a list".
std::string describe(const nlohmann::json& value);

}  // namespace hearth::model
