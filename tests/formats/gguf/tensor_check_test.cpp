#include "formats/gguf/tensor_check.h"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::formats {
namespace {

using ::testing::HasSubstr;

std::string error_of_check(DType dtype, const Shape& shape, Bytes data) {
  const GgufTensor tensor{
      .name = "t", .dtype = dtype, .shape = shape, .data = data, .offset = 1000};
  const auto checked = check_tensor_data(tensor, "m.gguf");
  return checked ? "no error" : checked.error().message;
}

TEST(TensorCheck, AcceptsFiniteWeights) {
  const std::vector<float> weights(5000, 1.5f);
  EXPECT_EQ(error_of_check(DType::f32, {5000}, std::as_bytes(std::span(weights))), "no error");
}

TEST(TensorCheck, NamesTheFirstWeightThatIsNoNumber) {
  std::vector<float> weights(5000, 1.5f);
  weights[4500] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of_check(DType::f32, {5000}, std::as_bytes(std::span(weights))),
            "m.gguf: tensor \"t\" at byte 19000: expected finite weights, found NaN or infinity in "
            "F32 block 4500");
  weights[4500] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of_check(DType::f32, {5000}, std::as_bytes(std::span(weights))),
              HasSubstr("block 4500"));
}

TEST(TensorCheck, FindsBrokenScalesOfBlockFormats) {
  constexpr std::uint16_t infinite_half = 0x7c00;
  std::array<std::byte, 3 * 34> q8_0{};
  EXPECT_EQ(error_of_check(DType{8}, {96}, q8_0), "no error");
  store(q8_0.data(), infinite_half, 2 * 34);  // codes 0, so that the weights are infinity times 0
  EXPECT_THAT(error_of_check(DType{8}, {96}, q8_0), HasSubstr("at byte 1068"));
  EXPECT_THAT(error_of_check(DType{8}, {96}, q8_0), HasSubstr("Q8_0 block 2"));
}

TEST(TensorCheck, FindsTheNaNScaleOfMxfp4) {
  std::array<std::byte, 2 * 17> mxfp4{};
  EXPECT_EQ(error_of_check(DType{39}, {64}, mxfp4), "no error");
  mxfp4[17] = std::byte{0xff};
  EXPECT_THAT(error_of_check(DType{39}, {64}, mxfp4), HasSubstr("MXFP4 block 1"));
}

TEST(TensorCheck, LeavesIntegersToTheirUser) {
  const std::array<std::int32_t, 2> ids{-1, 0x7fc00000};
  EXPECT_EQ(error_of_check(DType::i32, {2}, std::as_bytes(std::span(ids))), "no error");
}

}  // namespace
}  // namespace hearth::formats
