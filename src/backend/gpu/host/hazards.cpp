#include "backend/gpu/host/hazards.h"

#include <utility>
#include <variant>
#include <vector>

#include "base/fail.h"

namespace hearth::backend::gpu {
namespace {

/// One command's use of one piece of memory.
struct Access {
  AddressRange range;
  bool is_write = false;
  std::string_view command;  // kernel, "copy" or "fill"
  std::string_view label;    // of the buffer
};

Result<void> check_part(std::string_view command, const BufferPart& part) {
  if (part.buffer == nullptr) {
    return fail(ErrorCode::invalid_argument, "{}: a buffer is missing", command);
  }
  const std::uint64_t size = part.buffer->size_bytes();
  if (part.offset > size || part.bytes > size - part.offset || part.bytes == 0) {
    return fail(ErrorCode::invalid_argument, "{}: {} bytes at byte {} of buffer '{}', which has {}",
                command, part.bytes, part.offset, part.buffer->label(), size);
  }
  return {};
}

/// A command's accesses, or what is wrong with it on its own.
class Accesses {
 public:
  Result<std::vector<Access>> operator()(const DispatchCommand& command) const {
    const KernelInfo& kernel = kernel_info(command.kernel);
    std::vector<AddressRange> ranges;
    for (const BufferPart& part : command.buffers) {
      HEARTH_TRY(check_part(kernel.name, part));
      ranges.push_back(part.addresses());
    }
    HEARTH_TRY(
        check_dispatch(kernel, ranges, command.params.size(), command.grid, command.group_size));
    std::vector<Access> accesses;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      accesses.push_back({ranges[i], kernel.buffer_list[i].written, kernel.name,
                          command.buffers[i].buffer->label()});
    }
    return accesses;
  }
  Result<std::vector<Access>> operator()(const CopyCommand& command) const {
    HEARTH_TRY(check_copy(command.to, command.from));
    return std::vector<Access>{
        {command.to.addresses(), true, "copy", command.to.buffer->label()},
        {command.from.addresses(), false, "copy", command.from.buffer->label()}};
  }
  Result<std::vector<Access>> operator()(const FillCommand& command) const {
    HEARTH_TRY(check_part("fill", command.to));
    return std::vector<Access>{{command.to.addresses(), true, "fill", command.to.buffer->label()}};
  }
  Result<std::vector<Access>> operator()(const BarrierCommand& /*barrier*/) const {
    return std::vector<Access>{};
  }
};

/// The first access in `earlier` that must be over before `access`.
const Access* find_conflict(const std::vector<Access>& earlier, const Access& access) {
  for (const Access& other : earlier) {
    if ((other.is_write || access.is_write) && other.range.overlaps(access.range)) {
      return &other;
    }
  }
  return nullptr;
}

std::string_view verb(const Access& access) {
  return access.is_write ? "writes" : "reads";
}

}  // namespace

Result<void> check_copy(const BufferPart& to, const BufferPart& from) {
  HEARTH_TRY(check_part("copy", to));
  HEARTH_TRY(check_part("copy", from));
  if (to.bytes != from.bytes) {
    return fail(ErrorCode::invalid_argument, "copy: {} bytes to '{}', {} bytes from '{}'", to.bytes,
                to.buffer->label(), from.bytes, from.buffer->label());
  }
  if (to.addresses().overlaps(from.addresses())) {
    return fail(ErrorCode::invalid_argument, "copy: source and target overlap in '{}'",
                to.buffer->label());
  }
  return {};
}

Result<CommandCounts> check_commands(const CommandList& list) {
  CommandCounts counts;
  std::vector<Access> before;  // between the last two barriers
  std::vector<Access> since;   // since the last one
  bool is_needed = true;       // the last barrier
  for (const Command& command : list.commands()) {
    if (std::holds_alternative<BarrierCommand>(command)) {
      counts.idle_barriers += is_needed ? 0 : 1;
      ++counts.barriers;
      before = std::exchange(since, {});
      is_needed = false;
      continue;
    }
    counts.dispatches += std::holds_alternative<DispatchCommand>(command) ? 1 : 0;
    HEARTH_ASSIGN(const auto accesses, std::visit(Accesses(), command));
    for (const Access& access : accesses) {
      if (const Access* other = find_conflict(since, access)) {
        return fail(ErrorCode::invalid_argument,
                    "missing barrier: '{}' {} memory of '{}' that '{}' {}", access.command,
                    verb(access), access.label, other->command, verb(*other));
      }
      is_needed = is_needed || find_conflict(before, access) != nullptr;
    }
    since.insert(since.end(), accesses.begin(), accesses.end());
  }
  counts.idle_barriers += is_needed ? 0 : 1;
  return counts;
}

Result<void> check_transfer(std::string_view command, const BufferPart& part, std::uint64_t bytes) {
  HEARTH_TRY(check_part(command, part));
  if (part.bytes != bytes) {
    return fail(ErrorCode::invalid_argument, "{}: {} bytes of the host and {} of buffer '{}'",
                command, bytes, part.bytes, part.buffer->label());
  }
  return {};
}

}  // namespace hearth::backend::gpu
