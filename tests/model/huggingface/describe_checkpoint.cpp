#include "tests/model/huggingface/describe_checkpoint.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>
#include <variant>

#include "base/format.h"
#include "quant/registry.h"
#include "tests/quant/sha256.h"

namespace hearth::model {
namespace {

constexpr std::size_t longest_text = 40;

std::string text_of(std::string_view text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  return text.size() <= longest_text && is_plain ? std::string(text)
                                                 : quant::sha256(std::as_bytes(std::span(text)));
}

std::string text_of(const formats::Array& array) {
  static const std::map<formats::ValueType, std::string_view> names{
      {formats::ValueType::string, "STRING"},
      {formats::ValueType::i32, "INT32"},
      {formats::ValueType::f32, "FLOAT32"},
      {formats::ValueType::boolean, "BOOL"}};
  return format("{} {} {}", array.count, names.at(array.element_type), quant::sha256(array.bytes));
}

std::string text_of(float value) {
  return format("{:08x}", std::bit_cast<std::uint32_t>(value));
}

template <class T>
std::string text_of(T value) {
  return format("{}", value);
}

std::string hash_of(const CheckpointTensor& tensor) {
  const auto data = tensor.copy();
  return data ? quant::sha256(data->bytes()) : data.error().message;
}

}  // namespace

std::vector<std::string> describe(const Checkpoint& checkpoint) {
  std::vector<std::string> lines;
  for (const auto& entry : checkpoint.metadata().entries()) {
    const auto value = std::visit([](const auto& held) { return text_of(held); }, entry.value);
    lines.push_back(
        format("key {} {} {}", entry.key, formats::name_of(formats::type_of(entry.value)), value));
  }
  for (const auto& tensor : checkpoint.tensors()) {
    lines.push_back(format("tensor {} {} {} {}", tensor.name, quant::name(tensor.dtype),
                           to_string(tensor.shape), hash_of(tensor)));
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace hearth::model
