#include "tests/model/golden_model.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace hearth::model {
namespace {

const std::filesystem::path models = std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / "arch";
const auto huggingface = std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / "huggingface";
const auto mlx = std::filesystem::path(HEARTH_TESTS_DIR) / "golden" / "mlx";

template <class T>
std::vector<T> read_array(std::istream& in, std::size_t n) {
  std::vector<T> values(n);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(n * sizeof(T)));
  return values;
}

GoldenModel read_golden(const std::filesystem::path& path, const std::filesystem::path& model) {
  std::ifstream in(path, std::ios::binary);
  const auto header = read_array<std::int32_t>(in, 3);
  GoldenModel golden;
  golden.gguf_path = model.string();
  golden.n_vocab = header[2];
  golden.prompt = read_array<TokenId>(in, static_cast<std::size_t>(header[0]));
  golden.greedy = read_array<TokenId>(in, static_cast<std::size_t>(header[1]));
  golden.logits =
      read_array<float>(in, golden.prompt.size() * static_cast<std::size_t>(golden.n_vocab));
  const auto hidden = read_array<std::int32_t>(in, 2);
  for (std::int32_t layer = 0; in && layer < hidden[0]; ++layer) {
    golden.hidden.push_back(
        read_array<float>(in, golden.prompt.size() * static_cast<std::size_t>(hidden[1])));
  }
  if (std::ifstream mtp(std::filesystem::path(path).replace_extension(".mtp"), std::ios::binary);
      mtp) {
    golden.mtp_logits = read_array<float>(
        mtp, (golden.prompt.size() - 1) * static_cast<std::size_t>(golden.n_vocab));
  }
  return golden;
}

std::vector<std::string> folders_in(const std::filesystem::path& parent) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    if (entry.is_directory() && std::filesystem::exists(entry.path() / "config.json")) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> golden_model_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (entry.path().extension() == ".golden") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

GoldenModel load_golden_model(const std::string& name) {
  return read_golden(models / (name + ".golden"), models / (name + ".gguf"));
}

std::vector<std::string> golden_folder_names() {
  return folders_in(huggingface);
}

std::filesystem::path golden_folder(const std::string& name) {
  return huggingface / name;
}

GoldenModel load_golden_folder(const std::string& name) {
  return read_golden(golden_folder(name) / "logits.golden", golden_folder(name));
}

std::vector<std::string> golden_mlx_names() {
  return folders_in(mlx);
}

std::filesystem::path golden_mlx_folder(const std::string& name) {
  return mlx / name;
}

GoldenModel load_golden_mlx(const std::string& name) {
  return read_golden(golden_mlx_folder(name) / "logits.golden", golden_mlx_folder(name));
}

}  // namespace hearth::model
