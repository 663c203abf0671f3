#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace hearth::formats {

/// An empty folder for the files of one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(::testing::TempDir()) /
            (std::string("hearth_") + test.test_suite_name() + "_" + test.name() + "_" +
             std::to_string(std::random_device()()));
    std::filesystem::create_directories(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::size_t n_files() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hearth::formats
