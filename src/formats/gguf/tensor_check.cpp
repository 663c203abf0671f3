#include "formats/gguf/tensor_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "formats/gguf/place.h"
#include "quant/registry.h"

namespace hearth::formats {
namespace {

constexpr std::int64_t piece_weights = 4096;  // whole blocks of every format

/// In E8M0, the scale of MXFP4, 255 is NaN; its decoder follows the reference, which does not know.
constexpr std::byte e8m0_nan{0xff};
constexpr std::string_view e8m0_type = "MXFP4";

/// The first weight of the piece whose value is no number.
std::optional<std::int64_t> find_bad_weight(const quant::QuantInfo& type, Bytes blocks,
                                            std::span<float> weights) {
  if (type.name == e8m0_type) {
    for (std::size_t at = 0; at < blocks.size(); at += static_cast<std::size_t>(type.block_bytes)) {
      if (blocks[at] == e8m0_nan) {
        return static_cast<std::int64_t>(at) / type.block_bytes * type.block_weights;
      }
    }
  }
  quant::decode(type.dtype, blocks, weights);
  const auto bad = std::find_if_not(weights.begin(), weights.end(),
                                    [](float weight) { return std::isfinite(weight); });
  return bad == weights.end() ? std::nullopt : std::optional(bad - weights.begin());
}

}  // namespace

Result<void> check_tensor_data(const GgufTensor& tensor, std::string_view file) {
  if (!quant::is_float_decodable(tensor.dtype)) {
    return {};
  }
  const auto& type = quant::info(tensor.dtype);
  const auto n_weights = tensor.shape.elements();
  std::array<float, piece_weights> weights;
  for (std::int64_t first = 0; first < n_weights; first += piece_weights) {
    const auto n = std::min(piece_weights, n_weights - first);
    const auto begin = static_cast<std::size_t>(quant::row_bytes(tensor.dtype, first));
    const auto n_bytes = static_cast<std::size_t>(quant::row_bytes(tensor.dtype, n));
    const auto bad = find_bad_weight(type, tensor.data.subspan(begin, n_bytes),
                                     std::span(weights).first(static_cast<std::size_t>(n)));
    if (bad) {
      const auto block = (first + *bad) / type.block_weights;
      const auto offset = tensor.offset + static_cast<std::uint64_t>(block * type.block_bytes);
      return invalid(Place{file, "tensor", tensor.name, offset},
                     "expected finite weights, found NaN or infinity in {} block {}", type.name,
                     block);
    }
  }
  return {};
}

}  // namespace hearth::formats
