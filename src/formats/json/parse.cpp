#include "formats/json/parse.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "formats/gguf/place.h"

namespace hearth::formats {
namespace {

using nlohmann::json;

/// Builds the document from the parser's events; a `false` stops the parser at once.
class DocumentBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit DocumentBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(std::int64_t value) override { return add(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return add(value) != nullptr; }
  bool number_float(double value, const std::string& /*text*/) override {
    return add(value) != nullptr;
  }
  bool string(std::string& value) override { return add(std::move(value)) != nullptr; }
  bool binary(json::binary_t& /*value*/) override { return stop("found binary data"); }

  bool start_object(std::size_t /*n*/) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*n*/) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (open_.back()->contains(name)) {
      return stop("expected each key once, found a second " + in_quotes(name));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return stop(format("expected JSON, found something else at byte {}", position));
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }
  json take() { return std::move(document_); }

 private:
  bool stop(std::string fault) {
    if (fault_.empty()) {  // what we object to first; the parser may object once more
      fault_ = std::move(fault);
    }
    return false;
  }

  /// Where the value went, or nullptr.
  json* add(json value) {
    if (++n_values_ > limits_.max_values) {
      stop(format("expected at most {} values, found more", limits_.max_values));
      return nullptr;
    }
    if (open_.empty()) {
      document_ = std::move(value);
      return &document_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      return &parent.emplace_back(std::move(value));
    }
    return &(parent[std::move(key_)] = std::move(value));
  }

  bool open(json container) {
    if (open_.size() == limits_.max_depth) {
      return stop(format("expected at most {} levels, found more", limits_.max_depth));
    }
    json* added = add(std::move(container));
    if (added != nullptr) {
      open_.push_back(added);
    }
    return added != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  json document_;
  std::vector<json*> open_;  // an array grows only while its last element is closed
  std::string key_;
  std::size_t n_values_ = 0;
  std::string fault_;
};

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& file, const JsonLimits& limits) {
  DocumentBuilder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return fail(ErrorCode::invalid_file, "{}: {}", file, builder.fault());
  }
  return builder.take();
}

Result<json> read_json(const std::filesystem::path& path, std::size_t max_bytes) {
  HEARTH_ASSIGN(const auto mapping, MappedFile::open(path));
  const Bytes bytes = mapping.bytes();
  if (bytes.size() > max_bytes) {
    return fail(ErrorCode::invalid_file, "{}: expected at most {} bytes, found {}", path.string(),
                max_bytes, bytes.size());
  }
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace hearth::formats
