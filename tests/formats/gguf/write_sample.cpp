/// Writes a file with every value type and a few tensors, for read_back_test.py, which states what
/// has to come out: hearth_gguf_sample PATH [MAX_SHARD_BYTES]

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "formats/gguf/writer.h"

namespace hearth::formats {
namespace {

Metadata sample_metadata() {
  Metadata metadata;
  metadata.set("t.u8", std::uint8_t{200});
  metadata.set("t.i8", std::int8_t{-100});
  metadata.set("t.u16", std::uint16_t{60000});
  metadata.set("t.i16", std::int16_t{-30000});
  metadata.set("t.u32", std::uint32_t{4000000000});
  metadata.set("t.i32", std::int32_t{-2000000000});
  metadata.set("t.f32", 0.15625f);
  metadata.set("t.bool", true);
  metadata.set("t.string", "Grüße, 世界");
  metadata.set("t.u64", (std::uint64_t{1} << 63) + 5);
  metadata.set("t.i64", -(std::int64_t{1} << 62));
  metadata.set("t.f64", 0.1);
  metadata.set_array("t.strings", std::vector<std::string>{"", "a", "日本"});
  metadata.set_array<std::int32_t>("t.i32s", std::array<std::int32_t, 3>{1, -2, 3});
  metadata.set_array<bool>("t.bools", std::array{true, false});
  metadata.set("general.alignment", std::uint32_t{64});
  metadata.set("general.architecture", "test");
  return metadata;
}

int write(const char* path, std::uint64_t max_shard_bytes) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto bytes = std::as_bytes(std::span(values));
  std::array<std::byte, 2 * 34> blocks{};  // Q8_0: f16 scale 0.5, codes 0 to 31
  for (std::size_t row = 0; row < 2; ++row) {
    store<std::uint16_t>(blocks.data(), 0x3800, row * 34);
    for (std::size_t i = 0; i < 32; ++i) {
      blocks[row * 34 + 2 + i] = static_cast<std::byte>(i);
    }
  }
  const std::vector tensors{
      tensor_to_write("vector", {DType::f32, {5}, bytes.first(5 * sizeof(float))}),
      tensor_to_write("experts", {DType::f32, {2, 3, 4}, bytes}),
      tensor_to_write("quantized", {DType{8}, {2, 32}, blocks})};
  const auto paths =
      write_gguf(path, sample_metadata(), tensors, {.max_shard_bytes = max_shard_bytes});
  if (!paths) {
    std::fprintf(stderr, "%s\n", paths.error().message.c_str());
    return EXIT_FAILURE;
  }
  for (const auto& written : *paths) {
    std::puts(written.c_str());
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace hearth::formats

int main(int argc, char** argv) {
  if (argc < 2) {
    return EXIT_FAILURE;
  }
  return hearth::formats::write(argv[1], argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
}
