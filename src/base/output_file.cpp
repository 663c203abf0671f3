#include "base/output_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "base/assert.h"
#include "base/fail.h"
#include "base/format.h"

namespace hearth {

OutputFile::OutputFile(std::filesystem::path path, std::filesystem::path temporary)
    : path_(std::move(path)),
      temporary_(std::move(temporary)),
      stream_(temporary_, std::ios::binary | std::ios::trunc) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      stream_(std::move(other.stream_)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    stream_.close();
    std::error_code ignored;  // a left-over partial file is the lesser harm
    std::filesystem::remove(temporary_, ignored);
  }
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  return open(OutputFile(path, path.string() + ".partial"));
}

Result<OutputFile> OutputFile::create_beside_others(const std::filesystem::path& path) {
  return open(OutputFile(path, format("{}.{:08x}.partial", path.string(), std::random_device{}())));
}

Result<OutputFile> OutputFile::open(OutputFile file) {
  if (!file.stream_) {
    const auto temporary = std::exchange(file.temporary_, {});
    return fail(ErrorCode::io, "{}: cannot create: {}", temporary.string(), std::strerror(errno));
  }
  return file;
}

Result<void> OutputFile::write(Bytes bytes) {
  stream_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
  if (!stream_) {
    return fail(ErrorCode::io, "{}: cannot write {} bytes at byte {}: {}", temporary_.string(),
                bytes.size(), size_, std::strerror(errno));
  }
  size_ += bytes.size();
  return {};
}

Result<void> OutputFile::pad(std::uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> zeros{};
  std::uint64_t missing = (alignment - size_ % alignment) % alignment;
  while (missing > 0) {
    const auto piece = std::min<std::uint64_t>(missing, zeros.size());
    HEARTH_TRY(write(Bytes(zeros).first(piece)));
    missing -= piece;
  }
  return {};
}

Result<void> OutputFile::close() {
  stream_.close();
  if (!stream_) {
    return fail(ErrorCode::io, "{}: cannot finish writing {} bytes: {}", temporary_.string(), size_,
                std::strerror(errno));
  }
  return {};
}

Result<void> OutputFile::commit() {
  HEARTH_ASSERT(!stream_.is_open());
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) {
    return fail(ErrorCode::io, "{}: cannot rename to {}: {}", temporary_.string(), path_.string(),
                error.message());
  }
  temporary_.clear();
  return {};
}

}  // namespace hearth
