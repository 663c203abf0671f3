#pragma once

#include <cstddef>
#include <string_view>

namespace hearth::model {

/// Whether files keep this tensor in F32 whatever the type of the others: vectors, norms, routers,
/// convolutions. They are small, and an error in them is felt everywhere.
[[nodiscard]] inline bool is_always_f32(std::string_view canonical_name, std::size_t rank) {
  return rank <= 1 || canonical_name.ends_with("_norm.weight") ||
         !canonical_name.ends_with(".weight") ||
         canonical_name.find("ffn_gate_inp") != std::string_view::npos ||
         canonical_name.find("ssm_conv1d") != std::string_view::npos;
}

}  // namespace hearth::model
