#pragma once
/// The tiny models of tests/golden/arch, tests/golden/huggingface and tests/golden/mlx with what
/// transformers, or mlx-lm, computes on them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/token_id.h"

namespace hearth::model {

/// One .golden file; the layout is in tests/golden/arch/PROVENANCE.md.
struct GoldenModel {
  std::string gguf_path;  // or that of the folder
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;  // the tokens that follow the prompt
  std::int64_t n_vocab = 0;
  std::vector<float> logits;  // [prompt, n_vocab]
  /// [prompt, hidden] behind each layer but the last; empty where a file has none.
  std::vector<std::vector<float>> hidden;
  /// Of the MTP head, [prompt - 1, n_vocab]: row p is fed with the token at p + 1; empty without.
  std::vector<float> mtp_logits;
};

/// The names of all golden models, from the folder: "llama", "llama-yarn", "gemma3", ...
std::vector<std::string> golden_model_names();
GoldenModel load_golden_model(const std::string& name);

/// The names of all golden Hugging Face folders: "llama", "qwen35-r2-mtp", ...
std::vector<std::string> golden_folder_names();
std::filesystem::path golden_folder(const std::string& name);
/// Without greedy tokens.
GoldenModel load_golden_folder(const std::string& name);

/// The same for folders of MLX: "llama", "qwen35moe", ...
std::vector<std::string> golden_mlx_names();
std::filesystem::path golden_mlx_folder(const std::string& name);
GoldenModel load_golden_mlx(const std::string& name);

}  // namespace hearth::model
