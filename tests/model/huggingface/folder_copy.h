#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "model/checkpoint.h"
#include "tests/formats/gguf/scratch_folder.h"
#include "tests/model/golden_model.h"

namespace hearth::model {

/// A golden folder to be changed.
class FolderCopy {
 public:
  explicit FolderCopy(const std::string& golden,
                      std::filesystem::path (*folder_of)(const std::string& name) = golden_folder) {
    std::filesystem::copy(folder_of(golden), scratch_.path(),
                          std::filesystem::copy_options::recursive);
  }

  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream in(scratch_.file(file), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(scratch_.file(file), std::ios::binary) << text;
  }
  void remove(const std::string& file) const { std::filesystem::remove(scratch_.file(file)); }

  /// Replaces the first occurrence of `from`, which must be there.
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(file);
    const auto found = text.find(from);
    ASSERT_NE(found, std::string::npos) << from;
    write(file, text.replace(found, from.size(), to));
  }

  [[nodiscard]] Result<Checkpoint> open() const { return Checkpoint::open(scratch_.path()); }
  [[nodiscard]] std::string error() const {
    const auto checkpoint = open();
    return checkpoint ? "no error" : checkpoint.error().message;
  }

 private:
  formats::ScratchFolder scratch_;
};

}  // namespace hearth::model
