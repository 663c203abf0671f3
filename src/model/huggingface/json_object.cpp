#include "model/huggingface/json_object.h"

#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"

namespace hearth::model {

using nlohmann::json;

namespace {

/// The value, or the failure that says it is missing.
template <class T>
Result<T> require(Result<std::optional<T>> found, const Failure& missing) {
  if (!found) {
    return Failure(std::move(found).error());
  }
  if (!*found) {
    return missing;
  }
  return std::move(**found);
}

}  // namespace

std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return format("a list of {}", value.size());
    case json::value_t::string:
      return formats::in_quotes(value.get_ref<const std::string&>());
    default:
      return value.dump();  // a number or a word
  }
}

Result<JsonObject> JsonObject::of(const json& value, std::string place) {
  if (!value.is_object()) {
    return fail(ErrorCode::invalid_file, "{}: expected an object, found {}", place,
                describe(value));
  }
  return JsonObject(value, std::move(place));
}

const json* JsonObject::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

Failure JsonObject::mismatch(std::string_view name, std::string_view expected) const {
  return fail(ErrorCode::invalid_file, "{}: {}: expected {}, found {}", place_,
              formats::in_quotes(name), expected, describe(*find(name)));
}

Failure JsonObject::missing(std::string_view name) const {
  return fail(ErrorCode::not_found, "{}: expected {}, found nothing of that name", place_,
              formats::in_quotes(name));
}

Result<std::optional<std::int64_t>> JsonObject::find_count(std::string_view name, std::int64_t low,
                                                           std::int64_t high) const {
  const json* found = find(name);
  if (found == nullptr) {
    return std::optional<std::int64_t>();
  }
  const bool fits = found->is_number_unsigned()
                        ? std::cmp_less_equal(found->get<std::uint64_t>(), high)
                        : found->is_number_integer();
  if (!fits || found->get<std::int64_t>() < low || found->get<std::int64_t>() > high) {
    return mismatch(name, format("an integer from {} to {}", low, high));
  }
  return std::optional(found->get<std::int64_t>());
}

Result<std::int64_t> JsonObject::count(std::string_view name, std::int64_t low,
                                       std::int64_t high) const {
  return require(find_count(name, low, high), missing(name));
}

Result<std::optional<double>> JsonObject::find_number(std::string_view name) const {
  const json* found = find(name);
  if (found == nullptr) {
    return std::optional<double>();
  }
  if (!found->is_number() ||
      !(std::abs(found->get<double>()) <= std::numeric_limits<float>::max())) {
    return mismatch(name, "a number in the range of f32");
  }
  return std::optional(found->get<double>());
}

Result<double> JsonObject::number(std::string_view name) const {
  return require(find_number(name), missing(name));
}

Result<std::optional<bool>> JsonObject::find_flag(std::string_view name) const {
  const json* found = find(name);
  if (found == nullptr) {
    return std::optional<bool>();
  }
  if (!found->is_boolean()) {
    return mismatch(name, "true or false");
  }
  return std::optional(found->get<bool>());
}

Result<std::optional<std::string_view>> JsonObject::find_text(std::string_view name) const {
  const json* found = find(name);
  if (found == nullptr) {
    return std::optional<std::string_view>();
  }
  if (!found->is_string()) {
    return mismatch(name, "a string");
  }
  return std::optional<std::string_view>(found->get_ref<const std::string&>());
}

Result<std::string_view> JsonObject::text(std::string_view name) const {
  return require(find_text(name), missing(name));
}

Result<std::optional<JsonObject>> JsonObject::find_object(std::string_view name) const {
  const json* found = find(name);
  if (found == nullptr) {
    return std::optional<JsonObject>();
  }
  HEARTH_ASSIGN(auto object, of(*found, place_ + ": " + std::string(name)));
  return std::optional(std::move(object));
}

Result<JsonObject> JsonObject::object(std::string_view name) const {
  return require(find_object(name), missing(name));
}

Result<const json*> JsonObject::find_list(std::string_view name) const {
  const json* found = find(name);
  if (found != nullptr && !found->is_array()) {
    return mismatch(name, "a list");
  }
  return found;
}

}  // namespace hearth::model
