#pragma once

#include <cstdint>
#include <string_view>

#include "backend/gpu/host/command_list.h"
#include "base/result.h"

namespace hearth::backend::gpu {

/// What a command list consists of.
struct CommandCounts {
  std::int64_t dispatches = 0;
  std::int64_t barriers = 0;
  std::int64_t idle_barriers = 0;  // nothing after one, up to the next, depends on anything before

  bool operator==(const CommandCounts&) const = default;
};

/// Checks all that can be known before a list runs: every dispatch keeps the rules, parts lie
/// inside their buffers, and no command touches memory that one before it writes, or writes what
/// one before it reads, without a barrier between them. On CUDA a stream hides a barrier that was
/// forgotten; on Metal it is a result that is wrong now and then.
/// Errors: invalid_argument, which names both commands and the buffer.
Result<CommandCounts> check_commands(const CommandList& list);

/// For a copy on its own. Errors: invalid_argument.
Result<void> check_copy(const BufferPart& to, const BufferPart& from);

/// For uploads and downloads of `bytes`: the part lies inside its buffer and has that length.
/// Errors: invalid_argument.
Result<void> check_transfer(std::string_view command, const BufferPart& part, std::uint64_t bytes);

}  // namespace hearth::backend::gpu
