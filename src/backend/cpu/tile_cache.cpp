#include "backend/cpu/tile_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <system_error>

#include "backend/cpu/tile_fields.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/output_file.h"

namespace hearth::backend::cpu {
namespace {

constexpr std::array<char, 8> magic{'H', 'R', 'T', 'H', 'T', 'I', 'L', 'E'};
constexpr std::uint32_t version = 1;
/// A page, so that matrices share none. Kernels want 64 bytes.
constexpr std::uint64_t alignment = 4096;

/// The file begins with this; entries follow, then the tiles of each.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t n_matrices;
  std::uint64_t layout;
  std::uint64_t model;
  std::uint64_t file_bytes;
  std::uint64_t check;  // hash of the header, with 0 here, and of the entries
};

/// FNV-1a, from `hash` on. It finds accidents, not malice: who can write the file can also write
/// the model.
std::uint64_t hash_of(Bytes bytes, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return hash;
}

template <class T>
Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// Changes with the tiles of any type.
std::uint64_t tile_layout() {
  std::uint64_t hash = hash_of(bytes_of(panel_rows));
  quant::AllQuantTypes::for_each([&]<class Q>() {
    hash = hash_of(bytes_of(Q::info.dtype), hash);
    for (const TileField& field : tile_fields<Q>) {
      for (const std::uint64_t part :
           {field.offset, field.element_bytes, field.count, field.turns}) {
        hash = hash_of(bytes_of(part), hash);
      }
    }
  });
  return hash;
}

std::uint64_t check_of(Header header, Bytes entries) {
  header.check = 0;
  return hash_of(entries, hash_of(bytes_of(header)));
}

}  // namespace

Result<std::uint64_t> model_key(std::span<const std::filesystem::path> files) {
  constexpr std::size_t n_first_bytes = 1 << 20;
  std::uint64_t key = hash_of({});
  std::vector<char> first(n_first_bytes);
  for (const auto& path : files) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (error) {
      return fail(ErrorCode::io, "{}: cannot read its size: {}", path.string(), error.message());
    }
    const auto changed = std::filesystem::last_write_time(path, error).time_since_epoch().count();
    if (error) {
      return fail(ErrorCode::io, "{}: cannot read when it was changed: {}", path.string(),
                  error.message());
    }
    std::ifstream file(path, std::ios::binary);
    file.read(first.data(), static_cast<std::streamsize>(first.size()));
    if (file.bad() || (!file && !file.eof())) {
      return fail(ErrorCode::io, "{}: cannot read it", path.string());
    }
    const auto n_read = static_cast<std::size_t>(file.gcount());
    key = hash_of(bytes_of(size), key);
    key = hash_of(bytes_of(changed), key);
    key = hash_of(std::as_bytes(std::span(first).first(n_read)), key);
  }
  return key;
}

bool TileCache::Entry::is_of(const graph::Weight& weight) const {
  return name == hash_of(std::as_bytes(std::span(weight.name))) &&
         dtype == static_cast<std::uint64_t>(weight.tensor.dtype) &&
         n_rows == weight.tensor.shape.n_rows() && n_in == weight.tensor.shape.back();
}

TileCache::Entry TileCache::entry_of(const MatrixTiles& matrix, std::uint64_t offset) {
  const auto& [name, tensor, origin] = *matrix.weight;
  return {.name = hash_of(std::as_bytes(std::span(name))),
          .dtype = static_cast<std::uint64_t>(tensor.dtype),
          .n_rows = tensor.shape.n_rows(),
          .n_in = tensor.shape.back(),
          .offset = offset,
          .n_bytes = matrix.tiles.size()};
}

Result<void> TileCache::write(const std::filesystem::path& path, std::uint64_t model,
                              std::span<const MatrixTiles> matrices) {
  std::vector<Entry> entries;
  std::uint64_t end = sizeof(Header) + matrices.size() * sizeof(Entry);
  for (const auto& matrix : matrices) {
    entries.push_back(entry_of(matrix, *checked_round_up(end, alignment)));
    end = entries.back().offset + entries.back().n_bytes;
  }
  const Bytes table = std::as_bytes(std::span(entries));
  Header header{.magic = magic,
                .version = version,
                .n_matrices = static_cast<std::uint32_t>(entries.size()),
                .layout = tile_layout(),
                .model = model,
                .file_bytes = end,
                .check = 0};
  header.check = check_of(header, table);

  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return fail(ErrorCode::io, "{}: cannot make the folder: {}", path.parent_path().string(),
                error.message());
  }
  // Two processes may write at the same time: the last to end stays.
  HEARTH_ASSIGN(auto file, OutputFile::create_beside_others(path));
  HEARTH_TRY(file.write(bytes_of(header)));
  HEARTH_TRY(file.write(table));
  for (const auto& matrix : matrices) {
    HEARTH_TRY(file.pad(alignment));
    HEARTH_TRY(file.write(matrix.tiles));
  }
  HEARTH_TRY(file.close());
  return file.commit();
}

Result<TileCache> TileCache::open(const std::filesystem::path& path, std::uint64_t model) {
  HEARTH_ASSIGN(auto file, MappedFile::open(path));
  TileCache cache(std::move(file));
  HEARTH_TRY(cache.read(path, model));
  return cache;
}

Result<void> TileCache::read(const std::filesystem::path& path, std::uint64_t model) {
  const Bytes bytes = file_.bytes();
  const auto refuse = [&](std::string_view what, const auto& expected, const auto& found) {
    return fail(ErrorCode::invalid_file, "{}: {}: expected {}, found {}", path.string(), what,
                expected, found);
  };
  if (bytes.size() < sizeof(Header)) {
    return refuse("bytes of the header", sizeof(Header), bytes.size());
  }
  const auto header = load<Header>(bytes.data());
  if (header.magic != magic) {
    return fail(ErrorCode::invalid_file, "{}: is no file of tiles", path.string());
  }
  if (header.version != version) {
    return refuse("version", version, header.version);
  }
  if (header.file_bytes != bytes.size()) {
    return refuse("bytes of the file", header.file_bytes, bytes.size());
  }
  const std::uint64_t table_bytes = std::uint64_t{header.n_matrices} * sizeof(Entry);
  if (table_bytes > bytes.size() - sizeof(Header)) {
    return refuse("bytes of the table at most", bytes.size() - sizeof(Header), table_bytes);
  }
  const Bytes table = bytes.subspan(sizeof(Header), table_bytes);
  if (const auto check = check_of(header, table); check != header.check) {
    return refuse("hash of header and table", header.check, check);
  }
  if (header.layout != tile_layout()) {
    return refuse("layout of tiles", tile_layout(), header.layout);
  }
  if (header.model != model) {
    return fail(ErrorCode::invalid_file, "{}: the model's files have changed since it was written",
                path.string());
  }
  entries_.resize(header.n_matrices);
  std::memcpy(entries_.data(), table.data(), table.size());
  for (const Entry& entry : entries_) {
    const auto end = checked_add(entry.offset, entry.n_bytes);
    if (!end || *end > bytes.size() || entry.offset % alignment != 0) {
      return fail(ErrorCode::invalid_file,
                  "{}: {} bytes of tiles at byte {}: expected them within {}", path.string(),
                  entry.n_bytes, entry.offset, bytes.size());
    }
  }
  return {};
}

Bytes TileCache::find(const graph::Weight& weight) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.is_of(weight); });
  return found == entries_.end() ? Bytes{}
                                 : file_.bytes().subspan(static_cast<std::size_t>(found->offset),
                                                         static_cast<std::size_t>(found->n_bytes));
}

}  // namespace hearth::backend::cpu
