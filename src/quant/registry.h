#pragma once
/// Every tensor type by number or name: sizes and decoding. Built from the list in
/// quant/all_types.h.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "quant/integer_form.h"
#include "quant/quant_info.h"
#include "tensor/shape.h"

namespace hearth::quant {

/// All known types, ascending by number.
std::span<const QuantInfo> all();
/// Those among them that GGUF files have.
std::span<const QuantInfo> in_files();

/// nullptr when the number is not a type we know (removed, private to a fork, or newer).
const QuantInfo* find(DType dtype);
const QuantInfo* find(std::string_view name);
/// The same for a number from a file, which need not fit a DType; only types that files have.
const QuantInfo* find_id(std::uint32_t gguf_id);
/// What is known of a number that find_id() does not know, for an error message: "31 (Q4_0_4_4,
/// removed from GGUF)".
std::string describe_unknown(std::uint32_t gguf_id);

/// For a type that is known to be known (it came out of a checked file).
const QuantInfo& info(DType dtype);
std::string_view name(DType dtype);

/// Bytes of `row_length` consecutive elements; row_length is a multiple of the block.
std::int64_t row_bytes(DType dtype, std::int64_t row_length);
/// Bytes of a whole tensor; nullopt when it does not fit in 63 bits or the row length is not a
/// multiple of the block.
std::optional<std::int64_t> tensor_bytes(DType dtype, const Shape& shape);

/// True for the types whose elements are numbers that weights.size() floats can hold (not
/// i8...i64).
bool is_float_decodable(DType dtype);
/// Decodes whole blocks: `blocks` holds exactly weights.size() elements of `dtype`, a multiple of
/// its block, at any alignment. Bit-equal with the `gguf` Python package, or with mlx where the
/// type is MLX's. Aborts for a type that is not is_float_decodable().
void decode(DType dtype, Bytes blocks, std::span<float> weights);

/// nullptr for a type without integer form.
const IntegerLayout* integer_layout(DType dtype);
/// Splits one block, at any alignment, of a type that has an integer_layout().
void to_integers(DType dtype, Bytes block, IntegerBlock& integers);

}  // namespace hearth::quant
