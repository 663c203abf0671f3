#include "quant/registry.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::quant {
namespace {

/// The table of the GGUF specification: number, name, weights and bytes of a block.
struct Row {
  int id;
  std::string_view name;
  int block_weights;
  int block_bytes;
  bool operator==(const Row&) const = default;
};

const std::vector<Row> specification{
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},
    {25, "I16", 1, 2},        {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},    {42, "Q2_0", 64, 18}};

TEST(QuantRegistry, KnowsTheTypesOfTheSpecificationAndNoOthers) {
  std::vector<Row> rows;
  for (const QuantInfo& type : in_files()) {
    rows.push_back({static_cast<int>(type.dtype), type.name, static_cast<int>(type.block_weights),
                    static_cast<int>(type.block_bytes)});
  }
  EXPECT_TRUE(rows == specification);
  for (std::uint32_t id = 0; id < 1000; ++id) {
    const bool known =
        std::ranges::find(specification, static_cast<int>(id), &Row::id) != specification.end();
    EXPECT_EQ(find_id(id) != nullptr, known) << id;
  }
}

TEST(QuantRegistry, FindsATypeByNumberAndByName) {
  for (const QuantInfo& type : all()) {
    EXPECT_EQ(find(type.dtype), &type);
    EXPECT_EQ(find(type.name), &type);
    EXPECT_EQ(&info(type.dtype), &type);
    EXPECT_EQ(name(type.dtype), type.name);
  }
  EXPECT_EQ(find("Q4_2"), nullptr);
  EXPECT_EQ(find(DType{31}), nullptr);
  EXPECT_EQ(find_id(256), nullptr);  // 0 in eight bits
}

TEST(QuantRegistry, FindsTypesOfNoFileButNotByTheNumberInAFile) {
  for (const QuantInfo& type : all()) {
    const bool is_in_specification =
        std::ranges::find(specification, type.name, &Row::name) != specification.end();
    EXPECT_EQ(type.is_in_files, is_in_specification) << type.name;
    EXPECT_EQ(find_id(static_cast<std::uint32_t>(type.dtype)) != nullptr, is_in_specification)
        << type.name;
  }
}

TEST(QuantRegistry, SaysWhatAnUnknownNumberWas) {
  EXPECT_EQ(describe_unknown(4), "4 (Q4_2, removed from GGUF)");
  EXPECT_EQ(describe_unknown(31),
            "31 (Q4_0_4_4, removed from GGUF; the model has to be stored as Q4_0)");
  EXPECT_EQ(describe_unknown(144), "144 (a type of the ik_llama.cpp fork)");
  EXPECT_EQ(describe_unknown(43), "43 (not a type known here)");
  EXPECT_EQ(describe_unknown(4000000000), "4000000000 (not a type known here)");
}

TEST(QuantRegistry, CountsBytesByBlocks) {
  const DType q4_k = find("Q4_K")->dtype;
  EXPECT_EQ(row_bytes(q4_k, 4096), 16 * 144);
  EXPECT_EQ(tensor_bytes(q4_k, Shape{3, 4096}), 3 * 16 * 144);
  EXPECT_EQ(tensor_bytes(DType::f32, Shape{}), 4);
  EXPECT_EQ(tensor_bytes(DType::f32, Shape{2, 3, 5, 7}), 4 * 2 * 3 * 5 * 7);
  EXPECT_EQ(tensor_bytes(q4_k, Shape{0, 256}), 0);
  EXPECT_NEAR(find("Q6_K")->bits_per_weight(), 6.5625, 0);
}

TEST(QuantRegistry, HasNoSizeForTensorsThatCannotBe) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(tensor_bytes(find("Q4_K")->dtype, Shape{256, 32}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::f16, Shape{huge}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::i8, Shape{huge, 2}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::i8, Shape{1 << 30, 1 << 30, 1 << 30, 1}), std::nullopt);
}

TEST(QuantRegistry, DecodesEverythingButIntegers) {
  for (const QuantInfo& type : all()) {
    EXPECT_EQ(is_float_decodable(type.dtype),
              !type.name.starts_with('I') || type.name.starts_with("IQ"))
        << type.name;
  }
  std::vector<float> weight(1);
  const std::vector<std::byte> bytes(4);
  EXPECT_DEATH(decode(DType::i32, bytes, weight), "decode != nullptr");
  EXPECT_DEATH(decode(DType::f16, bytes, weight), "row_bytes");
}

}  // namespace
}  // namespace hearth::quant
