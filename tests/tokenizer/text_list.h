#pragma once
/// Reads the lists of texts and of numbers that tokenizer oracles consist of.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What stands before each occurrence of `terminator`.
inline std::vector<std::string> split_terminated(std::string_view text,
                                                 std::string_view terminator) {
  std::vector<std::string> parts;
  for (std::size_t found = text.find(terminator); found != std::string_view::npos;
       found = text.find(terminator)) {
    parts.emplace_back(text.substr(0, found));
    text.remove_prefix(found + terminator.size());
  }
  return parts;
}

/// The texts of an `.inp` file.
inline std::vector<std::string> read_texts(const std::filesystem::path& path) {
  return split_terminated(read_file(path), "\n__ggml_vocab_test__\n");
}

inline std::vector<std::int32_t> parse_numbers(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::int32_t>(stream), {}};
}

/// The numbers of each line of an `.out` file.
inline std::vector<std::vector<std::int32_t>> read_numbers(const std::filesystem::path& path) {
  std::vector<std::vector<std::int32_t>> numbers;
  for (const std::string& line : split_terminated(read_file(path), "\n")) {
    numbers.push_back(parse_numbers(line));
  }
  return numbers;
}

}  // namespace hearth
