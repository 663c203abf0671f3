#include "model/arch/all.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/fail.h"

namespace hearth::model {
namespace {

constexpr std::array architectures{
    ArchitectureEntry{"gemma3", bind_gemma3},       ArchitectureEntry{"llama", bind_llama},
    ArchitectureEntry{"qwen3", bind_qwen3},         ArchitectureEntry{"qwen35", bind_qwen35},
    ArchitectureEntry{"qwen35moe", bind_qwen35moe}, ArchitectureEntry{"qwen3moe", bind_qwen3moe},
    ArchitectureEntry{"qwen3next", bind_qwen3next},
};

}  // namespace

std::span<const ArchitectureEntry> all_architectures() {
  return architectures;
}

Result<const ArchitectureEntry*> find_architecture(const formats::Metadata& metadata) {
  HEARTH_ASSIGN(const auto name, metadata.get<std::string_view>("general.architecture"));
  const auto* found =
      std::find_if(architectures.begin(), architectures.end(),
                   [&](const ArchitectureEntry& entry) { return entry.name == name; });
  if (found != architectures.end()) {
    return found;
  }
  std::string known;
  for (const auto& entry : architectures) {
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail(ErrorCode::unsupported, "{}: architecture '{}' is not supported; known: {}",
              metadata.file(), name, known);
}

}  // namespace hearth::model
