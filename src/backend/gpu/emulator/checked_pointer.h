#pragma once
/// Pointers of emulated kernels: every access is compared with the memory it may touch.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string_view>
#include <type_traits>

namespace hearth::backend::gpu::emulator {

/// A place in a kernel's text.
using Site = std::source_location;

/// Memory that a kernel was given, or an array that it declared.
struct MemoryRange {
  std::byte* begin = nullptr;
  std::uint64_t bytes = 0;
  std::string_view name;
  /// What an EARLY_KERNEL finds there until it has waited for the kernel before it; null: the same.
  std::byte* before = nullptr;
};

/// Whether the lane that runs on this thread is of an EARLY_KERNEL and has not waited yet.
extern thread_local constinit bool lane_is_early;

/// Ends the lane with a report; the dispatch ends with it as its error.
[[noreturn]] void fault_outside(const MemoryRange& range, std::int64_t offset, std::size_t bytes,
                                Site where);
[[noreturn]] void fault_misaligned(const MemoryRange& range, std::int64_t offset, std::size_t bytes,
                                   Site where);

/// An index that knows where it was written, because operator[] cannot take a default argument.
struct LocatedIndex {
  std::int64_t value;
  Site where;

  template <std::integral I>
  LocatedIndex(I index, Site site = Site::current())
      : value(static_cast<std::int64_t>(index)), where(site) {}
};

enum class AddressSpace : std::uint8_t { device, shared };

/// A pointer into one address space. As in the other targets: indexing, adding an offset, adding
/// const; nothing takes const away, and spaces do not mix.
template <class T, AddressSpace space>
class CheckedPointer {
 public:
  CheckedPointer() = default;
  CheckedPointer(const MemoryRange& range, std::int64_t offset_bytes)
      : range_(&range), offset_(offset_bytes) {}

  operator CheckedPointer<const T, space>() const  // NOLINT: as of plain pointers
    requires(!std::is_const_v<T>)
  {
    return {*range_, offset_};
  }

  T& operator[](LocatedIndex index) const {
    const std::int64_t offset = offset_ + index.value * static_cast<std::int64_t>(sizeof(T));
    return *reinterpret_cast<T*>(address(offset, sizeof(T), index.where));
  }

  template <std::integral I>
  friend CheckedPointer operator+(CheckedPointer pointer, I n) {
    pointer.offset_ += static_cast<std::int64_t>(n) * static_cast<std::int64_t>(sizeof(T));
    return pointer;
  }

  /// The same place seen as other elements; const stays.
  template <class U>
  [[nodiscard]] CheckedPointer<std::conditional_t<std::is_const_v<T>, const U, U>, space> as()
      const {
    return {*range_, offset_};
  }

  /// Reads or writes a value at once, which has to be aligned to its size.
  template <class Value>
  [[nodiscard]] Value load(Site where) const {
    Value value;
    std::memcpy(&value, address(offset_, sizeof(Value), where), sizeof(Value));
    return value;
  }
  template <class Value>
  void store(const Value& value, Site where) const
    requires(!std::is_const_v<T>)
  {
    std::memcpy(address(offset_, sizeof(Value), where), &value, sizeof(Value));
  }

 private:
  [[nodiscard]] std::byte* address(std::int64_t offset, std::size_t bytes, Site where) const {
    // A negative offset is a huge unsigned one.
    if (static_cast<std::uint64_t>(offset) > range_->bytes ||
        range_->bytes - static_cast<std::uint64_t>(offset) < bytes) [[unlikely]] {
      fault_outside(*range_, offset, bytes, where);
    }
    std::byte* const begin =
        range_->before != nullptr && lane_is_early ? range_->before : range_->begin;
    std::byte* at = begin + offset;
    if ((reinterpret_cast<std::uintptr_t>(at) & (bytes - 1)) != 0) [[unlikely]] {
      fault_misaligned(*range_, offset, bytes, where);
    }
    return at;
  }

  const MemoryRange* range_ = nullptr;
  std::int64_t offset_ = 0;  // bytes
};

template <class T>
using DevicePointer = CheckedPointer<T, AddressSpace::device>;
template <class T>
using SharedPointer = CheckedPointer<T, AddressSpace::shared>;

}  // namespace hearth::backend::gpu::emulator
