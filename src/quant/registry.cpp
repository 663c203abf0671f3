#include "quant/registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/checked.h"
#include "base/format.h"
#include "quant/all_types.h"
#include "quant/decode.h"

namespace hearth::quant {
namespace {

/// Calls visit(block, index) for each block. Blocks of a file whose data is not aligned for their
/// type are copied one by one.
template <QuantType T, class Visit>
void for_each_block(Bytes bytes, Visit visit) {
  using Block = typename T::Block;
  const std::size_t n_blocks = bytes.size() / sizeof(Block);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Block) == 0) {
    const auto* blocks = reinterpret_cast<const Block*>(bytes.data());
    for (std::size_t i = 0; i < n_blocks; ++i) {
      visit(blocks[i], i);
    }
  } else {
    for (std::size_t i = 0; i < n_blocks; ++i) {
      visit(load<Block>(bytes.data(), i * sizeof(Block)), i);
    }
  }
}

template <FloatDecodable T>
void decode_bytes(Bytes bytes, std::span<float> weights) {
  constexpr std::size_t n = T::info.block_weights;
  for_each_block<T>(bytes, [weights](const typename T::Block& block, std::size_t i) {
    decode_block<T>(block, std::span<float, n>(&weights[i * n], n));
  });
}

template <HasIntegerForm T>
void bytes_to_integers(Bytes bytes, IntegerBlock& integers) {
  for_each_block<T>(bytes, [&integers](const typename T::Block& block, std::size_t) {
    T::to_integers(block, integers);
  });
}

/// What is done with a type by number; nullptr where the type does not have it.
struct Operations {
  void (*decode)(Bytes, std::span<float>) = nullptr;
  const IntegerLayout* integers = nullptr;
  void (*to_integers)(Bytes, IntegerBlock&) = nullptr;
};

template <QuantType T>
constexpr Operations operations_of() {
  Operations operations;
  if constexpr (FloatDecodable<T>) {
    operations.decode = decode_bytes<T>;
  }
  if constexpr (HasIntegerForm<T>) {
    operations.integers = &T::integers;
    operations.to_integers = bytes_to_integers<T>;
  }
  return operations;
}

template <class... Types>
constexpr auto infos_of(TypeList<Types...>) {
  return std::array{Types::info...};
}

template <class... Types>
constexpr auto operations_of(TypeList<Types...>) {
  return std::array{operations_of<Types>()...};
}

constexpr auto infos = infos_of(AllQuantTypes{});
constexpr auto operations = operations_of(AllQuantTypes{});
static_assert(std::ranges::is_sorted(infos, std::ranges::less_equal{}, &QuantInfo::dtype),
              "all_types.h is ascending by number, each once");
static_assert(std::ranges::is_partitioned(infos, &QuantInfo::is_in_files),
              "all_types.h has the types of files first");

constexpr int unknown = -1;

/// Position in the list by type number.
constexpr auto index_by_dtype = [] {
  std::array<std::int16_t, 256> index{};
  index.fill(unknown);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    index[static_cast<std::size_t>(infos[i].dtype)] = static_cast<std::int16_t>(i);
  }
  return index;
}();

/// Position in the list of a type that is in it.
std::size_t index_of(DType dtype) {
  const int index = index_by_dtype[static_cast<std::size_t>(dtype)];
  HEARTH_ASSERT(index != unknown);
  return static_cast<std::size_t>(index);
}

/// Numbers that are known not to be types of a GGUF file, and why.
struct Refusal {
  std::uint32_t first;
  std::uint32_t last;
  std::string_view reason;
};

constexpr std::array refusals{
    Refusal{4, 4, "Q4_2, removed from GGUF"},
    Refusal{5, 5, "Q4_3, removed from GGUF"},
    Refusal{9, 9, "Q8_1, which holds activations and is never stored in a file"},
    Refusal{15, 15, "Q8_K, which holds activations and is never stored in a file"},
    Refusal{31, 31, "Q4_0_4_4, removed from GGUF; the model has to be stored as Q4_0"},
    Refusal{32, 32, "Q4_0_4_8, removed from GGUF; the model has to be stored as Q4_0"},
    Refusal{33, 33, "Q4_0_8_8, removed from GGUF; the model has to be stored as Q4_0"},
    Refusal{36, 36, "IQ4_NL_4_4, removed from GGUF, or I2_S of the ik_llama.cpp fork"},
    Refusal{37, 37, "IQ4_NL_4_8, removed from GGUF; the model has to be stored as IQ4_NL"},
    Refusal{38, 38, "IQ4_NL_8_8, removed from GGUF; the model has to be stored as IQ4_NL"},
    Refusal{97, 99, "a type of the ik_llama.cpp fork"},
    Refusal{133, 135, "a type of the ik_llama.cpp fork"},
    Refusal{137, 141, "a type of the ik_llama.cpp fork"},
    Refusal{144, 158, "a type of the ik_llama.cpp fork"},
    Refusal{200, 399, "a row-interleaved type of the ik_llama.cpp fork"},
};

}  // namespace

std::span<const QuantInfo> all() {
  return infos;
}

std::span<const QuantInfo> in_files() {
  return {infos.begin(), std::ranges::partition_point(infos, &QuantInfo::is_in_files)};
}

const QuantInfo* find(DType dtype) {
  const int index = index_by_dtype[static_cast<std::size_t>(dtype)];
  return index == unknown ? nullptr : &infos[static_cast<std::size_t>(index)];
}

const QuantInfo* find(std::string_view name) {
  const auto found = std::ranges::find(infos, name, &QuantInfo::name);
  return found == infos.end() ? nullptr : &*found;
}

const QuantInfo* find_id(std::uint32_t gguf_id) {
  const QuantInfo* type =
      gguf_id < index_by_dtype.size() ? find(static_cast<DType>(gguf_id)) : nullptr;
  return type != nullptr && type->is_in_files ? type : nullptr;
}

std::string describe_unknown(std::uint32_t gguf_id) {
  const auto refusal = std::ranges::find_if(refusals, [gguf_id](const Refusal& candidate) {
    return candidate.first <= gguf_id && gguf_id <= candidate.last;
  });
  return refusal == refusals.end() ? format("{} (not a type known here)", gguf_id)
                                   : format("{} ({})", gguf_id, refusal->reason);
}

const QuantInfo& info(DType dtype) {
  return infos[index_of(dtype)];
}

std::string_view name(DType dtype) {
  return info(dtype).name;
}

std::int64_t row_bytes(DType dtype, std::int64_t row_length) {
  const QuantInfo& type = info(dtype);
  HEARTH_ASSERT(row_length % type.block_weights == 0);
  return row_length / type.block_weights * type.block_bytes;
}

std::optional<std::int64_t> tensor_bytes(DType dtype, const Shape& shape) {
  const QuantInfo& type = info(dtype);
  const std::int64_t row_length = shape.rank() == 0 ? 1 : shape.back();
  if (row_length % type.block_weights != 0) {
    return std::nullopt;
  }
  auto bytes = checked_mul(row_length / type.block_weights, type.block_bytes);
  for (int axis = 0; bytes && axis + 1 < shape.rank(); ++axis) {
    bytes = checked_mul(*bytes, shape[axis]);
  }
  return bytes;
}

bool is_float_decodable(DType dtype) {
  return operations[index_of(dtype)].decode != nullptr;
}

void decode(DType dtype, Bytes blocks, std::span<float> weights) {
  const std::size_t index = index_of(dtype);
  HEARTH_ASSERT(operations[index].decode != nullptr);
  HEARTH_ASSERT(
      std::cmp_equal(blocks.size(), row_bytes(dtype, static_cast<std::int64_t>(weights.size()))));
  operations[index].decode(blocks, weights);
}

const IntegerLayout* integer_layout(DType dtype) {
  return operations[index_of(dtype)].integers;
}

void to_integers(DType dtype, Bytes block, IntegerBlock& integers) {
  const std::size_t index = index_of(dtype);
  HEARTH_ASSERT(operations[index].to_integers != nullptr);
  HEARTH_ASSERT(std::cmp_equal(block.size(), infos[index].block_bytes));
  operations[index].to_integers(block, integers);
}

}  // namespace hearth::quant
