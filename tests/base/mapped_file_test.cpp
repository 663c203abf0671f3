#include "base/mapped_file.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "hearth_mapped_file";
  std::ofstream(path, std::ios::binary) << "hearth";
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  const MappedFile moved = std::move(*file);
  ASSERT_EQ(moved.bytes().size(), 6u);
  EXPECT_EQ(moved.bytes()[0], std::byte{'h'});
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const auto path = std::filesystem::path(testing::TempDir()) / "hearth_empty_file";
  std::ofstream(path, std::ios::binary) << "";
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, ErrorsNameThePath) {
  const auto missing = MappedFile::open("/no/such/file");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(missing.error().message.find("/no/such/file"), std::string::npos);
  const auto folder = MappedFile::open(testing::TempDir());
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace hearth
