#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/mapped_file.h"
#include "quant/registry.h"

namespace hearth::quant {
namespace {

TEST(BlockFormatsPage, HasALineForEveryType) {
  const auto path =
      std::filesystem::path(HEARTH_TESTS_DIR) / ".." / "docs" / "formats" / "block-formats.md";
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  const std::string_view page(reinterpret_cast<const char*>(file->bytes().data()),
                              file->bytes().size());
  for (const QuantInfo& type : all()) {
    const std::string line =
        format("| {} | {} | {} | {} | {} | {} |\n", type.name, static_cast<int>(type.dtype),
               type.block_weights, type.block_bytes, type.bits_per_weight(),
               integer_layout(type.dtype) != nullptr ? "yes" : "");
    EXPECT_NE(page.find(line), std::string_view::npos) << "missing: " << line;
  }
}

}  // namespace
}  // namespace hearth::quant
