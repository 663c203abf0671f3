#include "tests/quant/sha256.h"

#include <string_view>

#include <gtest/gtest.h>

namespace hearth::quant {
namespace {

std::string sha256_of(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

// Values of FIPS 180-4's example messages.
TEST(Sha256, MatchesThePublishedExamples) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace hearth::quant
