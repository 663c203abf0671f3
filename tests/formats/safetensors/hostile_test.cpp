/// The hostile files of docs/formats/safetensors.md.

#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors/container.h"
#include "tests/formats/safetensors/file_text.h"

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error_of_bytes(const std::string& file) {
  const auto read = parse_safetensors(bytes_of(file), "model.safetensors");
  if (read) {
    return "no error";
  }
  EXPECT_THAT(read.error().message, StartsWith("model.safetensors: "));
  return read.error().message;
}

std::string error_of(const std::string& header, std::size_t n_data = 0) {
  return error_of_bytes(safetensors_file(header, n_data));
}

/// A file of one tensor "t" with 8 bytes of data.
std::string error_of_tensor(std::string_view dtype, std::string_view shape, std::uint64_t begin,
                            std::uint64_t end) {
  return error_of("{" + entry("t", dtype, shape, begin, end) + "}", 8);
}

TEST(SafetensorsHostile, AHeaderLongerThanTheFileIsRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{100'000'001}, std::numeric_limits<std::uint64_t>::max(),
        std::numeric_limits<std::uint64_t>::max() - 7}) {
    std::string file = safetensors_file("{}", 0);
    std::memcpy(file.data(), &length, sizeof length);
    EXPECT_THAT(error_of_bytes(file), HasSubstr("expected a length from 2 to 2")) << length;
  }
  EXPECT_THAT(error_of_bytes(""), HasSubstr("expected 8 bytes of length"));
  EXPECT_THAT(error_of_bytes("1234567"), HasSubstr("found a file of 7"));
  EXPECT_THAT(error_of(""), HasSubstr("expected a length from 2"));
  EXPECT_THAT(error_of("{"), HasSubstr("expected a length from 2"));
}

TEST(SafetensorsHostile, AHeaderThatIsNotAJsonObjectIsRefused) {
  EXPECT_THAT(error_of("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of(" {}"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of("{}\n"), HasSubstr("padded with spaces"));
  EXPECT_THAT(error_of("    "), HasSubstr("expected a JSON object"));
  EXPECT_THAT(error_of("{\"a\"}"), HasSubstr("expected JSON, found something else at byte"));
  EXPECT_THAT(error_of("{}{}"), HasSubstr("expected JSON"));
  EXPECT_THAT(error_of("{\"\xff\":1}"), HasSubstr("expected JSON"));
  EXPECT_THAT(error_of(std::string("{\"a\0\":1}", 8)), HasSubstr("expected JSON"));
}

TEST(SafetensorsHostile, DeepNestingIsRefusedWithoutRecursion) {
  const std::string open(1'000'000, '[');
  EXPECT_THAT(error_of("{\"a\":" + open + "}"), HasSubstr("expected at most 3 levels"));
  EXPECT_THAT(error_of("{\"a\":{\"shape\":[[0]]}}"), HasSubstr("expected at most 3 levels"));
}

TEST(SafetensorsHostile, ANameThatOccursTwiceIsRefused) {
  const auto t = entry("t", "U8", "[1]", 0, 1);
  EXPECT_THAT(error_of("{" + t + "," + t + "}", 1), HasSubstr("found a second \"t\""));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"dtype":"I8"}})", 1),
              HasSubstr("found a second \"dtype\""));
  // Two spellings of one name.
  EXPECT_THAT(error_of("{" + t + "," + entry(R"(\u0074)", "U8", "[1]", 0, 1) + "}", 1),
              HasSubstr("found a second \"t\""));
}

TEST(SafetensorsHostile, AnEntryOfAnotherFormIsRefused) {
  EXPECT_THAT(error_of(R"({"t":1})"), HasSubstr("an object of dtype, shape and data_offsets"));
  EXPECT_THAT(error_of(R"({"t":{}})"), HasSubstr("an object of dtype, shape and data_offsets"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":1,"shape":[],"data_offsets":[0,0]}})"),
              HasSubstr("\"dtype\" to be a string"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":1,"data_offsets":[0,0]}})"),
              HasSubstr("\"shape\" to be a list"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0]}})"),
              HasSubstr("two data_offsets"));
  EXPECT_THAT(error_of(R"({"t":{"dtype":"U8","shape":[0],"extra":[0,0]}})"),
              HasSubstr("\"data_offsets\" to be a list"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"format":1}})"), HasSubstr("to be a string"));
  EXPECT_THAT(error_of(R"({"__metadata__":[]})"), HasSubstr("an object of strings"));
}

TEST(SafetensorsHostile, AnUnknownTypeIsRefusedByName) {
  for (const char* name : {"F4", "f32", "", "FLOAT32", "\\u001b[31m"}) {
    const auto read = parse_safetensors(
        bytes_of(safetensors_file("{" + entry("t", name, "[0]", 0, 0) + "}", 0)), "model");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::unsupported);
    EXPECT_THAT(read.error().message, HasSubstr("expected a known dtype, found \""));
    EXPECT_EQ(read.error().message.find('\x1b'), std::string::npos);
  }
}

TEST(SafetensorsHostile, AShapeThatContradictsTheDataIsRefused) {
  EXPECT_EQ(error_of_tensor("F32", "[2]", 0, 8), "no error");
  EXPECT_THAT(error_of_tensor("F32", "[3]", 0, 8), HasSubstr("expected 12 bytes"));
  EXPECT_THAT(error_of_tensor("BF16", "[2]", 0, 8), HasSubstr("expected 4 bytes"));
  EXPECT_THAT(error_of_tensor("F32", "[0]", 0, 8), HasSubstr("expected 0 bytes"));
  EXPECT_THAT(error_of_tensor("F32", "[]", 0, 8), HasSubstr("expected 4 bytes"));
}

TEST(SafetensorsHostile, NumbersThatAreNoSizesAreRefused) {
  for (const char* shape :
       {"[-1]", "[-0]", "[2.0]", "[2e0]", "[\"2\"]", "[true]", "[null]", "[9223372036854775808]",
        "[1e400]", "[18446744073709551616]", "[1,1,1,1,1,1,1,1,2]"}) {
    EXPECT_NE(error_of_tensor("F32", shape, 0, 8), "no error") << shape;
  }
}

TEST(SafetensorsHostile, AProductOfDimensionsThatOverflowsIsRefused) {
  EXPECT_THAT(error_of_tensor("F32", "[9223372036854775807,2]", 0, 8),
              HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(error_of_tensor("U8", "[4294967296,4294967296]", 0, 0),
              HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(error_of_tensor("F64", "[1152921504606846976]", 0, 8),
              HasSubstr("fewer than 2^63 bytes"));
  // A zero does not hide an overflow.
  EXPECT_THAT(error_of_tensor("F32", "[0,9223372036854775807,9]", 0, 0),
              HasSubstr("fewer than 2^63 bytes"));
}

TEST(SafetensorsHostile, OffsetsOutOfRangeAreRefused) {
  EXPECT_THAT(error_of_tensor("F32", "[2]", 8, 0), HasSubstr("ascending, of at most 8"));
  EXPECT_THAT(error_of_tensor("F32", "[2]", 1, 9), HasSubstr("ascending, of at most 8"));
  EXPECT_THAT(error_of_tensor("F32", "[2]", std::uint64_t{1} << 62, (std::uint64_t{1} << 62) + 8),
              HasSubstr("ascending, of at most 8"));
  EXPECT_THAT(error_of_tensor("F32", "[2]", std::numeric_limits<std::uint64_t>::max() - 7, 0),
              HasSubstr("integers from 0 to 2^63 - 1"));
}

TEST(SafetensorsHostile, OverlapsAndGapsAreRefused) {
  const auto first = "{" + entry("a", "U8", "[4]", 0, 4) + ",";
  EXPECT_EQ(error_of(first + entry("b", "U8", "[4]", 4, 8) + "}", 8), "no error");
  EXPECT_THAT(error_of(first + entry("b", "U8", "[5]", 3, 8) + "}", 8),
              HasSubstr("right after the data before it"));
  EXPECT_THAT(error_of(first + entry("b", "U8", "[3]", 5, 8) + "}", 8),
              HasSubstr("right after the data before it"));
  EXPECT_THAT(error_of(first + entry("b", "U8", "[4]", 0, 4) + "}", 4),
              HasSubstr("right after the data before it"));
  EXPECT_THAT(error_of(first + entry("b", "U8", "[0]", 2, 2) + "}", 4),
              HasSubstr("right after the data before it"));
  EXPECT_THAT(error_of("{" + entry("b", "U8", "[7]", 1, 8) + "}", 8),
              HasSubstr("right after the data before it"));
  EXPECT_THAT(error_of("{" + entry("b", "U8", "[7]", 0, 7) + "}", 8),
              HasSubstr("up to the end of the file"));
  EXPECT_THAT(error_of("{}", 1), HasSubstr("up to the end of the file"));
}

TEST(SafetensorsHostile, ManyNamesTakeNoQuadraticTime) {
  constexpr int count = 100'000;
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header +=
        (i == 0 ? "" : ",") + entry(std::string(50, 'a') + std::to_string(i), "U8", "[0]", 0, 0);
  }
  const std::clock_t begin = std::clock();
  EXPECT_EQ(error_of(header + "}"), "no error");
  // Quadratic time would be a minute; n log n is two seconds even with sanitizers.
  EXPECT_LT((std::clock() - begin) / CLOCKS_PER_SEC, 15);
}

TEST(SafetensorsHostile, EveryTruncationAndEveryChangedByteIsReadOrRefused) {
  const auto file = safetensors_file("{" + entry("a", "BF16", "[2]", 0, 4) + "}", 4);
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(error_of_bytes(file.substr(0, length)), "no error") << length;
  }
  int n_refused = 0;
  for (std::size_t at = 0; at + 4 < file.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      n_refused += error_of_bytes(changed) == "no error" ? 0 : 1;
    }
  }
  EXPECT_GT(n_refused, 15000);
}

}  // namespace
}  // namespace hearth::formats
