/// Whatever is written comes back: every value type by name, then random models.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "formats/gguf/reader.h"
#include "formats/gguf/writer.h"
#include "quant/registry.h"
#include "tests/formats/gguf/scratch_folder.h"

namespace hearth::formats {
namespace {

/// Bytes of a value, so that NaN equals NaN.
std::string bits_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string_view>) {
          return std::string(held);
        } else if constexpr (std::is_same_v<Held, Array>) {
          return std::string(name_of(held.element_type)) + std::to_string(held.count) +
                 std::string(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
        } else {
          return {reinterpret_cast<const char*>(&held), sizeof held};
        }
      },
      value);
}

void expect_same(const Metadata& written, const Metadata& read) {
  ASSERT_EQ(written.entries().size(), read.entries().size());
  for (std::size_t i = 0; i < written.entries().size(); ++i) {
    EXPECT_EQ(written.entries()[i].key, read.entries()[i].key);
    EXPECT_EQ(type_of(written.entries()[i].value), type_of(read.entries()[i].value));
    EXPECT_EQ(bits_of(written.entries()[i].value), bits_of(read.entries()[i].value));
  }
}

TEST(GgufRoundTrip, KeepsEveryValueType) {
  Metadata metadata;
  metadata.set("u8", std::uint8_t{255});
  metadata.set("i8", std::int8_t{-128});
  metadata.set("u16", std::uint16_t{65535});
  metadata.set("i16", std::int16_t{-32768});
  metadata.set("u32", std::uint32_t{4294967295});
  metadata.set("i32", std::int32_t{-2147483647});
  metadata.set("f32", -0.0f);
  metadata.set("bool", true);
  metadata.set("string", std::string_view("nul \0 inside", 12));
  metadata.set("u64", ~std::uint64_t{0});
  metadata.set("i64", std::int64_t{-1} << 63);
  metadata.set("f64", 0.1);
  metadata.set_array<std::uint8_t>("[u8]", std::array<std::uint8_t, 2>{1, 2});
  metadata.set_array<std::int8_t>("[i8]", std::array<std::int8_t, 2>{-1, 2});
  metadata.set_array<std::uint16_t>("[u16]", std::array<std::uint16_t, 2>{1, 65535});
  metadata.set_array<std::int16_t>("[i16]", std::array<std::int16_t, 2>{-1, 2});
  metadata.set_array<std::uint32_t>("[u32]", std::array<std::uint32_t, 2>{1, 2});
  metadata.set_array<std::int32_t>("[i32]", std::array<std::int32_t, 2>{-1, 2});
  metadata.set_array<float>("[f32]", std::array{0.5f, -1.0f});
  metadata.set_array<bool>("[bool]", std::array{true, false, true});
  metadata.set_array("[string]", std::vector<std::string>{"", "a", "bc"});
  metadata.set_array<std::uint64_t>("[u64]", std::array<std::uint64_t, 1>{7});
  metadata.set_array<std::int64_t>("[i64]", std::array<std::int64_t, 1>{-7});
  metadata.set_array<double>("[f64]", std::array{0.1});
  metadata.set_array<float>("empty", {});
  const ScratchFolder folder;
  ASSERT_TRUE(write_gguf(folder.file("m.gguf"), metadata, {}));
  const auto file = GgufFile::open(folder.file("m.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  expect_same(metadata, file->metadata());
}

/// Bytes of any value, also in strings; short, because there are many of them.
rc::Gen<std::string> any_text() {
  return rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}

template <class T>
void set_any_number(Metadata& metadata, const std::string& key) {
  if constexpr (!std::is_same_v<T, bool>) {
    if (*rc::gen::arbitrary<bool>()) {
      const auto elements = *rc::gen::arbitrary<std::vector<T>>();
      metadata.set_array<T>(key, elements);
      return;
    }
  }
  metadata.set(key, *rc::gen::arbitrary<T>());
}

void set_any_value(Metadata& metadata, const std::string& key) {
  const auto type = *rc::gen::inRange<std::uint32_t>(0, value_type_names.size());
  switch (static_cast<ValueType>(type)) {
    case ValueType::string:
      metadata.set(key, *any_text());
      break;
    case ValueType::array:
      metadata.set_array(key, *rc::gen::container<std::vector<std::string>>(any_text()));
      break;
    default:
      with_number_type(static_cast<ValueType>(type),
                       [&]<class T>(T) { set_any_number<T>(metadata, key); });
  }
}

Metadata any_metadata() {
  Metadata metadata;
  metadata.set("general.architecture", "any");
  metadata.set("general.quantization_version", std::uint32_t{2});
  const auto alignment = std::uint32_t{1} << *rc::gen::inRange(3, 13);
  metadata.set("general.alignment", alignment);
  const int n_keys = *rc::gen::inRange(0, 12);
  for (int i = 0; i < n_keys; ++i) {
    set_any_value(metadata, "any.key." + std::to_string(i));
  }
  return metadata;
}

struct OwnedTensor {
  std::string name;
  DType dtype{};
  Shape shape;
  std::vector<std::byte> data;
};

OwnedTensor any_tensor(std::size_t number) {
  OwnedTensor tensor;
  tensor.name = std::to_string(number) + (*any_text()).substr(0, 40);
  const auto& type = *rc::gen::elementOf(
      std::vector<quant::QuantInfo>(quant::in_files().begin(), quant::in_files().end()));
  tensor.dtype = type.dtype;
  // The outermost dimension is at least 2, since the writer drops outer unit dimensions.
  std::vector<std::int64_t> dims(*rc::gen::inRange<std::size_t>(1, 5));
  for (auto& dim : dims) {
    dim = *rc::gen::inRange(1, 4);
  }
  dims.front() += 1;
  dims.back() *= type.block_weights;
  tensor.shape = Shape(dims);
  tensor.data.resize(
      static_cast<std::size_t>(quant::tensor_bytes(tensor.dtype, tensor.shape).value()));
  const auto seed = *rc::gen::arbitrary<std::uint8_t>();
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    tensor.data[i] = static_cast<std::byte>(seed + 31 * i);
  }
  return tensor;
}

RC_GTEST_PROP(GgufRoundTrip, AnyModelComesBackWholeOrSplit, ()) {
  const ScratchFolder folder;
  const Metadata metadata = any_metadata();
  std::vector<OwnedTensor> tensors(*rc::gen::inRange<std::size_t>(0, 6));
  std::vector<TensorToWrite> to_write;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = any_tensor(i);
    to_write.push_back(
        tensor_to_write(tensors[i].name, {tensors[i].dtype, tensors[i].shape, tensors[i].data}));
  }
  const auto max_shard_bytes = *rc::gen::element<std::uint64_t>(0, 1000);

  const auto paths =
      write_gguf(folder.file("m.gguf"), metadata, to_write, {.max_shard_bytes = max_shard_bytes});
  RC_ASSERT(paths.has_value());
  const auto file = GgufFile::open(paths->front());
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->n_shards() == paths->size());
  RC_ASSERT(file->tensors().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& read = file->tensors()[i];
    RC_ASSERT(read.name == tensors[i].name);
    RC_ASSERT(read.dtype == tensors[i].dtype);
    RC_ASSERT(read.shape == tensors[i].shape);
    RC_ASSERT(std::equal(read.data.begin(), read.data.end(), tensors[i].data.begin(),
                         tensors[i].data.end()));
    RC_ASSERT(file->find(tensors[i].name) == &read);
  }
  for (const auto& entry : metadata.entries()) {
    const auto* read = file->metadata().entry(entry.key);
    RC_ASSERT(read != nullptr);
    RC_ASSERT(type_of(read->value) == type_of(entry.value));
    RC_ASSERT(bits_of(read->value) == bits_of(entry.value));
  }
}

}  // namespace
}  // namespace hearth::formats
