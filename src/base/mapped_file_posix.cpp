#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/mapped_file.h"

namespace hearth {
namespace {

/// Closes the descriptor on every path; the mapping outlives it.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) {
      ::close(fd);
    }
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) {
    const auto code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return fail(code, "{}: cannot open: {}", path.string(), std::strerror(errno));
  }
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) {
    return fail(ErrorCode::io, "{}: cannot read its size: {}", path.string(), std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::io, "{}: is not a regular file", path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return MappedFile(Bytes{});  // mmap refuses empty ranges
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) {
    return fail(ErrorCode::io, "{}: cannot map {} bytes: {}", path.string(), size,
                std::strerror(errno));
  }
  return MappedFile(Bytes(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace hearth
