#pragma once

#include <vector>

#include "backend/gpu/host/command_list.h"
#include "backend/gpu/metal/driver.h"

namespace hearth::backend::gpu::metal {

/// Writes commands into command buffers, which the GPU begins to run while the rest is written.
/// Dispatches between two barriers may run at the same time. Keeps no buffer alive.
class Encoder {
 public:
  explicit Encoder(Driver& driver) : driver_(driver), pool_(driver.runtime()) {}

  void add(const DispatchCommand& command, Object pipeline);
  void add(const CopyCommand& command);
  void add(const FillCommand& command);
  void add(const BarrierCommand& barrier);
  /// Hands in what is left; once it is done, the driver's event has that value. Returns the command
  /// buffers in their order. Errors: internal when the queue gave none, and nothing was handed in
  /// since.
  Result<std::vector<Owned>> finish(UInteger value);

 private:
  enum class Kind { none, compute, blit };  // of Metal's encoder

  bool begin_command_buffer();
  bool begin(Kind kind);
  void end();
  [[nodiscard]] Object command_buffer() const { return command_buffers_.back().get(); }

  Driver& driver_;
  Pool pool_;
  std::vector<Owned> command_buffers_;
  bool is_open_ = false;  // the last command buffer
  bool has_failed_ = false;
  Kind kind_ = Kind::none;
  Object encoder_ = nullptr;  // the pool's
  int n_dispatches_ = 0;      // in the last command buffer
};

}  // namespace hearth::backend::gpu::metal
