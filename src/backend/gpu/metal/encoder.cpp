#include "backend/gpu/metal/encoder.h"

#include <utility>

#include "backend/gpu/metal/metal_buffer.h"
#include "base/fail.h"

namespace hearth::backend::gpu::metal {
namespace {

// The GPU runs the first while the next are written. The number is what other Metal programs found
// good, 40 to 50.
constexpr int dispatches_per_command_buffer = 48;
constexpr UInteger params_index = max_kernel_buffers;

Size size_of(const Dim3& dimensions) {
  return {dimensions.x, dimensions.y, dimensions.z};
}

}  // namespace

bool Encoder::begin_command_buffer() {
  if (!is_open_ && !has_failed_) {
    const Object made = driver_.messages().command_buffer(driver_.queue());
    has_failed_ = made == nullptr;
    if (!has_failed_) {
      command_buffers_.push_back(Owned::retain(driver_.runtime(), made));
      is_open_ = true;
      n_dispatches_ = 0;
    }
  }
  return !has_failed_;
}

/// An encoder of that kind, which begins when the one before has ended.
bool Encoder::begin(Kind kind) {
  if (kind_ == kind) {
    return true;
  }
  end();
  if (!begin_command_buffer()) {
    return false;
  }
  const Messages& send = driver_.messages();
  kind_ = kind;
  encoder_ = kind == Kind::compute
                 ? send.compute_encoder(command_buffer(), DispatchType::concurrent)
                 : send.blit_encoder(command_buffer());
  if (driver_.is_fence_updated) {
    const auto& wait = kind == Kind::compute ? send.compute_wait : send.blit_wait;
    wait(encoder_, driver_.fence());
  }
  return true;
}

void Encoder::end() {
  if (kind_ == Kind::none) {
    return;
  }
  const Messages& send = driver_.messages();
  const auto& update = kind_ == Kind::compute ? send.compute_update : send.blit_update;
  update(encoder_, driver_.fence());
  send.end_encoding(encoder_);
  driver_.is_fence_updated = true;
  kind_ = Kind::none;
}

void Encoder::add(const DispatchCommand& command, Object pipeline) {
  if (!begin(Kind::compute)) {
    return;
  }
  const Messages& send = driver_.messages();
  send.set_pipeline(encoder_, pipeline);
  for (UInteger i = 0; i < command.buffers.size(); ++i) {
    const BufferPart& part = command.buffers[i];
    send.set_buffer(encoder_, metal_buffer(part), part.offset, i);
  }
  send.set_bytes(encoder_, command.params.data(), command.params.size(), params_index);
  send.dispatch(encoder_, size_of(command.grid), size_of(command.group_size));
  ++n_dispatches_;
}

void Encoder::add(const CopyCommand& command) {
  if (begin(Kind::blit)) {
    driver_.messages().copy(encoder_, metal_buffer(command.from), command.from.offset,
                            metal_buffer(command.to), command.to.offset, command.to.bytes);
  }
}

void Encoder::add(const FillCommand& command) {
  if (begin(Kind::blit)) {
    driver_.messages().fill(encoder_, metal_buffer(command.to),
                            {command.to.offset, command.to.bytes}, command.value);
  }
}

void Encoder::add(const BarrierCommand& /*barrier*/) {
  const bool is_full = n_dispatches_ >= dispatches_per_command_buffer;
  if (kind_ == Kind::compute && !is_full) {
    driver_.messages().memory_barrier(encoder_, BarrierScope::buffers);
    return;
  }
  end();  // the fence is a barrier too
  if (is_open_ && is_full) {
    driver_.messages().commit(command_buffer());
    is_open_ = false;
  }
}

Result<std::vector<Owned>> Encoder::finish(UInteger value) {
  end();
  if (!begin_command_buffer()) {
    return fail(ErrorCode::internal, "metal: the queue gives no command buffer");
  }
  driver_.messages().signal_event(command_buffer(), driver_.event(), value);
  driver_.messages().commit(command_buffer());
  is_open_ = false;
  return std::move(command_buffers_);
}

}  // namespace hearth::backend::gpu::metal
