#pragma once
/// Constants of the GGUF container and the bounds this reader sets, see docs/formats/gguf.md.

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "formats/gguf/metadata.h"

namespace hearth::formats {

inline constexpr std::string_view gguf_magic = "GGUF";
inline constexpr std::uint32_t oldest_gguf_version = 2;
inline constexpr std::uint32_t newest_gguf_version = 3;

// The smallest key (name length, name of one byte, type, value of one byte) and the smallest entry
// of the directory (name length, name of one byte, n_dims, type, offset) bound their counts by the
// size of the file.
inline constexpr std::uint64_t min_key_bytes = 8 + 1 + 4 + 1;
inline constexpr std::uint64_t min_tensor_info_bytes = 8 + 1 + 4 + 4 + 8;

// Bounds on what a file may ask of memory, an order of magnitude above the largest known models.
inline constexpr std::uint64_t max_tensors = std::uint64_t{1} << 20;
inline constexpr std::uint64_t max_keys = std::uint64_t{1} << 20;
inline constexpr std::uint64_t max_key_length = 65535;
inline constexpr std::uint64_t max_string_bytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t max_array_count = std::uint64_t{1} << 30;

/// Read up to the documented 64 bytes; write one less, because the reference reader adds a NUL.
inline constexpr std::uint64_t max_tensor_name_read = 64;
inline constexpr std::uint64_t max_tensor_name_written = 63;

inline constexpr std::string_view alignment_key = "general.alignment";
inline constexpr std::uint32_t default_alignment = 32;
inline constexpr std::uint32_t min_alignment = 8;
inline constexpr std::uint32_t max_alignment = 1 << 20;

/// general.alignment, or the default. Errors: invalid_file when it is no integer or no power of two
/// between the bounds.
Result<std::uint32_t> alignment_of(const Metadata& metadata);

/// Non-empty printable ASCII of at most max_key_length bytes.
bool is_valid_key(std::string_view key);

}  // namespace hearth::formats
