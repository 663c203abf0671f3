#include "formats/gguf/container.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/checked.h"
#include "formats/gguf/cursor.h"
#include "formats/gguf/layout.h"
#include "formats/gguf/place.h"
#include "quant/registry.h"

namespace hearth::formats {
namespace {

struct Header {
  std::uint32_t version{};
  std::uint64_t n_tensors{};
  std::uint64_t n_keys{};
};

Result<std::uint32_t> read_version(Cursor& cursor) {
  HEARTH_ASSIGN(const auto version, cursor.read<std::uint32_t>("the version"));
  // A big-endian file says so only by its version, whose bytes come in the other order.
  if (version != 0 && (version & 0xffffu) == 0) {
    return fail(ErrorCode::unsupported, "{}: expected a little-endian file, found a big-endian one",
                to_string(cursor.place()));
  }
  if (version < oldest_gguf_version || version > newest_gguf_version) {
    return fail(ErrorCode::unsupported, "{}: expected GGUF version {} to {}, found {}",
                to_string(cursor.place()), oldest_gguf_version, newest_gguf_version, version);
  }
  return version;
}

/// A count of things that take at least `min_bytes` each in what is left of the file.
Result<std::uint64_t> read_count(Cursor& cursor, std::string_view what, std::uint64_t min_bytes,
                                 std::uint64_t cap) {
  HEARTH_ASSIGN(const auto count, cursor.read<std::uint64_t>(what));
  const auto limit = std::min(cap, cursor.remaining() / min_bytes);
  if (count > limit) {
    return invalid(cursor.place(), "expected {} of at most {} in a file of this size, found {}",
                   what, limit, count);
  }
  return count;
}

Result<Header> read_header(Cursor& cursor) {
  cursor.enter("header");
  HEARTH_ASSIGN(const Bytes magic, cursor.read_bytes(gguf_magic.size(), "the magic \"GGUF\""));
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found != gguf_magic) {
    return invalid(cursor.place(), "expected the magic {}, found {}", in_quotes(gguf_magic),
                   in_quotes(found));
  }
  Header header;
  HEARTH_ASSIGN(header.version, read_version(cursor));
  HEARTH_ASSIGN(header.n_tensors,
                read_count(cursor, "the number of tensors", min_tensor_info_bytes, max_tensors));
  HEARTH_ASSIGN(header.n_keys, read_count(cursor, "the number of keys", min_key_bytes, max_keys));
  return header;
}

Result<ValueType> read_value_type(Cursor& cursor) {
  HEARTH_ASSIGN(const auto type, cursor.read<std::uint32_t>("a value type"));
  if (type >= value_type_names.size()) {
    return invalid(cursor.place(), "expected a value type from 0 to {}, found {}",
                   value_type_names.size() - 1, type);
  }
  return static_cast<ValueType>(type);
}

Result<Bytes> read_numbers(Cursor& cursor, ValueType type, std::uint64_t count) {
  HEARTH_ASSIGN(const Bytes bytes,
                cursor.read_bytes(count * min_element_bytes(type), name_of(type)));
  if (type == ValueType::boolean) {
    const auto bad =
        std::find_if(bytes.begin(), bytes.end(), [](auto b) { return b > std::byte{1}; });
    if (bad != bytes.end()) {
      return invalid(cursor.place(), "expected a bool of 0 or 1, found {} (element {})",
                     std::to_integer<int>(*bad), bad - bytes.begin());
    }
  }
  return bytes;
}

Result<Value> read_array(Cursor& cursor) {
  HEARTH_ASSIGN(const auto type, read_value_type(cursor));
  if (type == ValueType::array) {
    return invalid(cursor.place(), "expected an array of numbers or strings, found nested arrays");
  }
  HEARTH_ASSIGN(const auto count, read_count(cursor, "the number of elements",
                                             min_element_bytes(type), max_array_count));
  if (type != ValueType::string) {
    HEARTH_ASSIGN(const Bytes bytes, read_numbers(cursor, type, count));
    return Array{type, count, bytes};
  }
  const auto begin = cursor.offset();
  for (std::uint64_t i = 0; i < count; ++i) {
    HEARTH_TRY(cursor.read_string(max_string_bytes, "a string of the array"));
  }
  return Array{type, count, cursor.since(begin)};
}

Result<Value> read_value(Cursor& cursor, ValueType type) {
  if (type == ValueType::array) {
    return read_array(cursor);
  }
  if (type == ValueType::string) {
    return cursor.read_string(max_string_bytes, "a string");
  }
  HEARTH_ASSIGN(const Bytes bytes, read_numbers(cursor, type, 1));
  return with_number_type(type, [bytes]<class T>(T) -> Value { return load<T>(bytes.data()); });
}

Result<Metadata> read_metadata(Cursor& cursor, std::uint64_t n_keys, const std::string& file) {
  Metadata metadata(file);
  for (std::uint64_t i = 0; i < n_keys; ++i) {
    Metadata::Entry entry;
    cursor.enter("key");
    entry.offset = cursor.offset();
    HEARTH_ASSIGN(entry.key, cursor.read_string(max_key_length, "the name of a key"));
    cursor.enter("key", entry.key);
    if (!is_valid_key(entry.key)) {
      return invalid(cursor.place(), "expected a name in printable ASCII, found {}",
                     in_quotes(entry.key));
    }
    HEARTH_ASSIGN(const auto type, read_value_type(cursor));
    HEARTH_ASSIGN(entry.value, read_value(cursor, type));
    if (!metadata.add_borrowed(entry)) {
      return invalid(Place{file, "key", entry.key, entry.offset},
                     "expected each key once, found a second; the first is at byte {}",
                     *metadata.entry(entry.key)->offset);
    }
  }
  return metadata;
}

/// What the directory says of one tensor; `relative_offset` counts from the data section.
struct TensorInfo {
  std::string_view name;
  DType dtype{};
  Shape shape;
  std::uint64_t n_bytes{};
  std::uint64_t relative_offset{};
  std::uint64_t info_offset{};  // of this record in the file
};

/// The dimensions, turned round to outermost first. Their product fits i64.
Result<Shape> read_shape(Cursor& cursor) {
  HEARTH_ASSIGN(const auto n_dims, cursor.read<std::uint32_t>("the number of dimensions"));
  if (n_dims > Shape::max_rank) {
    return invalid(cursor.place(), "expected at most {} dimensions, found {}", Shape::max_rank + 0,
                   n_dims);
  }
  std::array<std::int64_t, Shape::max_rank> dims{1};
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < n_dims; ++i) {
    HEARTH_ASSIGN(const auto dim, cursor.read<std::int64_t>("a dimension"));
    if (dim < 1) {
      return invalid(cursor.place(), "expected dimension {} to be from 1 to 2^63 - 1, found {}", i,
                     static_cast<std::uint64_t>(dim));
    }
    const auto product = checked_mul(elements, dim);
    if (!product) {
      return invalid(cursor.place(), "expected fewer than 2^63 elements, found {} x {} and more",
                     elements, dim);
    }
    elements = *product;
    dims[i] = dim;
  }
  const std::size_t rank = std::max(n_dims, 1u);  // no dimensions: one element
  std::reverse(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank));
  return Shape(std::span<const std::int64_t>(dims.data(), rank));
}

Result<const quant::QuantInfo*> read_tensor_type(Cursor& cursor) {
  HEARTH_ASSIGN(const auto type, cursor.read<std::uint32_t>("the tensor type"));
  const auto* known = quant::find_id(type);
  if (known == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a known tensor type, found {}",
                to_string(cursor.place()), quant::describe_unknown(type));
  }
  return known;
}

Result<TensorInfo> read_tensor_info(Cursor& cursor) {
  TensorInfo info;
  cursor.enter("tensor");
  info.info_offset = cursor.offset();
  HEARTH_ASSIGN(info.name, cursor.read_string(max_tensor_name_read, "the name of a tensor"));
  if (info.name.empty()) {
    return invalid(cursor.place(), "expected a name, found an empty one");
  }
  cursor.enter("tensor", info.name);
  HEARTH_ASSIGN(info.shape, read_shape(cursor));
  HEARTH_ASSIGN(const auto* type, read_tensor_type(cursor));
  info.dtype = type->dtype;
  if (info.shape.back() % type->block_weights != 0) {
    return invalid(cursor.place(), "expected rows of a multiple of {} elements for {}, found {}",
                   type->block_weights, type->name, info.shape.back());
  }
  const auto n_bytes = quant::tensor_bytes(info.dtype, info.shape);
  if (!n_bytes) {
    return invalid(cursor.place(), "expected fewer than 2^63 bytes, found {} of shape {}",
                   type->name, to_string(info.shape));
  }
  info.n_bytes = static_cast<std::uint64_t>(*n_bytes);
  HEARTH_ASSIGN(info.relative_offset, cursor.read<std::uint64_t>("the data offset"));
  return info;
}

Result<std::vector<TensorInfo>> read_tensor_infos(Cursor& cursor, std::uint64_t n_tensors) {
  std::vector<TensorInfo> infos;
  infos.reserve(n_tensors);
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    HEARTH_ASSIGN(infos.emplace_back(), read_tensor_info(cursor));
  }
  return infos;
}

/// The part of a file that holds tensor data.
struct DataSection {
  std::string_view file;
  std::uint64_t begin{};
  std::uint64_t alignment{};
  Bytes bytes;
};

Result<DataSection> find_data_section(Bytes file_bytes, std::string_view file,
                                      std::uint64_t end_of_infos, std::uint32_t alignment) {
  const auto begin = checked_round_up(end_of_infos, alignment);
  if (!begin || *begin > file_bytes.size()) {
    return invalid(Place{file, "tensor data", {}, end_of_infos},
                   "expected data after padding to a multiple of {}, found the end of the file at "
                   "byte {}",
                   alignment, file_bytes.size());
  }
  return DataSection{file, *begin, alignment, file_bytes.subspan(*begin)};
}

Result<GgufTensor> locate(const TensorInfo& info, const DataSection& data) {
  const Place place{data.file, "tensor", info.name, info.info_offset};
  if (info.relative_offset % data.alignment != 0) {
    return invalid(place, "expected a data offset that is a multiple of {}, found {}",
                   data.alignment, info.relative_offset);
  }
  const std::uint64_t available = data.bytes.size();
  if (info.relative_offset > available || info.n_bytes > available - info.relative_offset) {
    return invalid(place,
                   "expected {} bytes at offset {} of the tensor data, found {} bytes of data in "
                   "the file",
                   info.n_bytes, info.relative_offset, available);
  }
  return GgufTensor{.name = info.name,
                    .dtype = info.dtype,
                    .shape = info.shape,
                    .data = data.bytes.subspan(info.relative_offset, info.n_bytes),
                    .offset = data.begin + info.relative_offset};
}

Result<void> refuse_overlaps(std::span<const GgufTensor> tensors, std::string_view file) {
  std::vector<const GgufTensor*> by_offset;
  by_offset.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const auto& before = *by_offset[i - 1];
    const auto& after = *by_offset[i];
    if (after.offset - before.offset < before.data.size()) {
      return invalid(Place{file, "tensor", after.name, after.offset},
                     "expected data after the end of tensor {}, found {} bytes of it at byte {}",
                     in_quotes(before.name), before.data.size(), before.offset);
    }
  }
  return {};
}

}  // namespace

Result<Container> parse_container(Bytes bytes, const std::string& file) {
  Cursor cursor(bytes, file);
  Container container;
  HEARTH_ASSIGN(const Header header, read_header(cursor));
  container.version = header.version;
  HEARTH_ASSIGN(container.metadata, read_metadata(cursor, header.n_keys, file));
  HEARTH_ASSIGN(container.alignment, alignment_of(container.metadata));
  HEARTH_ASSIGN(const auto infos, read_tensor_infos(cursor, header.n_tensors));
  if (infos.empty()) {
    return container;  // without tensors there need be no padding
  }
  HEARTH_ASSIGN(const DataSection data,
                find_data_section(bytes, file, cursor.offset(), container.alignment));
  container.tensors.reserve(infos.size());
  for (const TensorInfo& info : infos) {
    if (!container.by_name.emplace(info.name, container.tensors.size()).second) {
      return invalid(Place{file, "tensor", info.name, info.info_offset},
                     "expected each tensor once, found a second of this name");
    }
    HEARTH_ASSIGN(container.tensors.emplace_back(), locate(info, data));
  }
  HEARTH_TRY(refuse_overlaps(container.tensors, file));
  return container;
}

}  // namespace hearth::formats
