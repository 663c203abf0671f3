#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "formats/gguf/writer.h"
#include "model/model.h"
#include "tests/model/golden_model.h"

namespace hearth::model {

/// A golden model taken apart, to be changed and written again.
class ModelFile {
 public:
  explicit ModelFile(const std::string& name)
      : source_(*formats::GgufFile::open(load_golden_model(name).gguf_path)),
        metadata(source_.metadata().clone()) {
    for (const auto& tensor : source_.tensors()) {
      tensors.push_back(formats::tensor_to_write(std::string(tensor.name), tensor.view()));
    }
  }

  formats::TensorToWrite& tensor(std::string_view name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const auto& tensor) { return tensor.name == name; });
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return std::ranges::any_of(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }
  void rename_key(std::string_view from, std::string_view to) {
    formats::Metadata renamed;
    for (const auto& entry : metadata.entries()) {
      renamed.set(entry.key == from ? to : entry.key, entry.value);
    }
    metadata = std::move(renamed);
  }
  void remove(std::string_view name) {
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }

  Result<std::unique_ptr<const Model>> open() const {
    const auto path =
        std::filesystem::path(testing::TempDir()) /
        (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".gguf");
    const auto written = formats::write_gguf(path, metadata, tensors);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    auto model = Model::open(path);
    std::filesystem::remove(path);
    return model;
  }

  /// Opening must fail with a message that holds all of `words`.
  void expect_refused(ErrorCode code, const std::vector<std::string>& words) const {
    const auto model = open();
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().code, code) << model.error().message;
    for (const auto& word : words) {
      EXPECT_NE(model.error().message.find(word), std::string::npos)
          << "no '" << word << "' in: " << model.error().message;
    }
  }

 private:
  formats::GgufFile source_;

 public:
  formats::Metadata metadata;
  std::vector<formats::TensorToWrite> tensors;
};

}  // namespace hearth::model
