#include <algorithm>
#include <cstring>

#include "tests/backend/gpu/metal/fake_objects.h"

namespace hearth::backend::gpu::metal {
namespace {

/// Commands between barriers, and what is bound for the next dispatch.
struct FakeEncoder final : FakeObject {
  explicit FakeEncoder(std::string name) : FakeObject(std::move(name)), segments(1) {}

  std::vector<std::vector<std::function<void()>>> segments;
  Object pipeline = nullptr;
  std::map<UInteger, std::pair<Object, UInteger>> buffers;  // by index, with the offset
  std::vector<std::byte> params;
  FakeFence* waited_for = nullptr;
  FakeFence* updated = nullptr;
  bool is_ended = false;
};

struct FakeCommandBuffer final : FakeObject {
  FakeCommandBuffer() : FakeObject("MTLCommandBuffer") {}

  std::vector<FakeEncoder*> encoders;
  std::function<void()> signal;
  bool is_committed = false;
  Integer error_code = 0;
};

// Queue and command buffers.
void add_residency_set(Object, Selector, Object set) {
  expect_class(set, "MTLResidencySet");
}
Object command_buffer(Object, Selector) {
  return fake_metal().gives_command_buffers ? pooled_object<FakeCommandBuffer>() : nullptr;
}
Object begin_encoder(Object command_buffer, const char* name) {
  auto& encoders = find<FakeCommandBuffer>(command_buffer).encoders;
  EXPECT_TRUE(encoders.empty() || encoders.back()->is_ended);
  const Object encoder = pooled_object<FakeEncoder>(name);
  encoders.push_back(&find<FakeEncoder>(encoder));
  return encoder;
}
Object compute_encoder(Object self, Selector, DispatchType type) {
  EXPECT_EQ(type, DispatchType::concurrent);
  return begin_encoder(self, "MTLComputeCommandEncoder");
}
Object blit_encoder(Object self, Selector) {
  return begin_encoder(self, "MTLBlitCommandEncoder");
}
void signal_event(Object self, Selector, Object event, UInteger value) {
  find<FakeCommandBuffer>(self).signal = [=] { find<FakeEvent>(event).value = value; };
}

/// Runs an encoder's work: everything between two barriers backwards.
void run(const FakeEncoder& encoder) {
  EXPECT_TRUE(encoder.is_ended);
  ASSERT_NE(encoder.updated, nullptr) << "work that nothing can wait for";
  EXPECT_EQ(encoder.waited_for, encoder.updated->is_updated ? encoder.updated : nullptr)
      << "work that the fence does not order";
  encoder.updated->is_updated = true;
  for (const auto& segment : encoder.segments) {
    std::for_each(segment.rbegin(), segment.rend(), [](const auto& work) { work(); });
  }
}

void commit(Object self, Selector) {
  FakeMetal& fake = fake_metal();
  auto& buffer = find<FakeCommandBuffer>(self);
  EXPECT_FALSE(buffer.is_committed);
  buffer.is_committed = true;
  ++fake.n_commits;
  if (!fake.errors.empty()) {
    buffer.error_code = fake.errors.front();
    fake.errors.pop_front();
  }
  if (buffer.error_code != 0) {
    return;  // and nobody signals
  }
  std::ranges::for_each(buffer.encoders, [](const FakeEncoder* encoder) { run(*encoder); });
  if (buffer.signal) {
    buffer.signal();
  }
}

/// Whether work is not done yet, once more.
bool is_busy() {
  int& n_left = fake_metal().n_busy_queries;
  n_left -= n_left > 0 ? 1 : 0;
  return n_left > 0;
}
CommandBufferStatus status(Object self, Selector) {
  constexpr CommandBufferStatus committed{2};
  const auto& buffer = find<FakeCommandBuffer>(self);
  EXPECT_TRUE(buffer.is_committed);
  const auto done =
      buffer.error_code == 0 ? CommandBufferStatus::completed : CommandBufferStatus::error;
  return is_busy() ? committed : done;
}
Object error(Object self, Selector) {
  return pooled_object<FakeError>(find<FakeCommandBuffer>(self).error_code, "it said so");
}
void wait_until_completed(Object self, Selector) {
  EXPECT_TRUE(find<FakeCommandBuffer>(self).is_committed);
  fake_metal().n_busy_queries = 0;
}
bool wait_for_value(Object self, Selector, UInteger value, UInteger /*timeout_ms*/) {
  return !is_busy() && find<FakeEvent>(self).value >= value;
}

// Encoders.
FakeEncoder& open_encoder(Object encoder) {
  auto& found = find<FakeEncoder>(encoder);
  EXPECT_FALSE(found.is_ended);
  return found;
}
void wait_for_fence(Object self, Selector, Object fence) {
  EXPECT_TRUE(open_encoder(self).segments.front().empty()) << "a wait behind work";
  open_encoder(self).waited_for = &find<FakeFence>(fence);
}
void update_fence(Object self, Selector, Object fence) {
  open_encoder(self).updated = &find<FakeFence>(fence);
}
void memory_barrier(Object self, Selector, BarrierScope scope) {
  EXPECT_EQ(scope, BarrierScope::buffers);
  open_encoder(self).segments.emplace_back();
}
void set_pipeline(Object self, Selector, Object pipeline) {
  expect_class(pipeline, "MTLComputePipelineState");
  open_encoder(self).pipeline = pipeline;
}
void set_buffer(Object self, Selector, Object buffer, UInteger offset, UInteger index) {
  EXPECT_LT(index, 30u);
  open_encoder(self).buffers[index] = {buffer, offset};
}
void set_bytes(Object self, Selector, const void* bytes, UInteger length, UInteger index) {
  EXPECT_EQ(index, 30u);
  EXPECT_LE(length, 4096u);
  const auto* begin = static_cast<const std::byte*>(bytes);
  open_encoder(self).params.assign(begin, begin + length);
}
void end_encoding(Object self, Selector) {
  open_encoder(self).is_ended = true;
}

Dim3 dim3(Size size) {
  return {static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height),
          static_cast<std::uint32_t>(size.depth)};
}
void dispatch(Object self, Selector, Size grid, Size group_size) {
  const FakeEncoder& encoder = open_encoder(self);
  const auto& kernel = *find<FakeKernel>(encoder.pipeline).kernel;
  fake_metal().launched.emplace_back(kernel.info.name);
  auto work = [&kernel, bound = encoder.buffers, params = encoder.params, grid = dim3(grid),
               group = dim3(group_size)] {
    std::vector<emulator::MemoryRange> buffers;
    for (UInteger i = 0; i < kernel.info.n_buffers; ++i) {
      const auto& [buffer, offset] = bound.at(i);
      const auto memory = find<FakeBuffer>(buffer).memory.subspan(offset);
      buffers.push_back({memory.data(), memory.size(), kernel.info.buffer_list[i].name});
    }
    const auto result = fake_metal().emulator.run(kernel, buffers, params, grid, group);
    EXPECT_TRUE(result) << result.error().message;
  };
  open_encoder(self).segments.back().emplace_back(std::move(work));
}

std::span<std::byte> memory_of(Object buffer, UInteger offset, UInteger bytes) {
  return find<FakeBuffer>(buffer).memory.subspan(offset, bytes);
}
void copy(Object self, Selector, Object from, UInteger from_offset, Object to, UInteger to_offset,
          UInteger bytes) {
  EXPECT_EQ((from_offset | to_offset | bytes) % 4, 0u);
  open_encoder(self).segments.back().emplace_back([=] {
    std::ranges::copy(memory_of(from, from_offset, bytes), memory_of(to, to_offset, bytes).begin());
  });
}
void fill(Object self, Selector, Object buffer, Range range, std::uint8_t value) {
  EXPECT_EQ((range.location | range.length) % 4, 0u);
  open_encoder(self).segments.back().emplace_back([=] {
    std::ranges::fill(memory_of(buffer, range.location, range.length), std::byte{value});
  });
}

}  // namespace

const FakeMethods& work_methods() {
  static const FakeMethods table{
      {{"MTLCommandQueue", "addResidencySet:"}, add_residency_set},
      {{"MTLCommandQueue", "commandBufferWithUnretainedReferences"}, command_buffer},
      {{"MTLCommandBuffer", "computeCommandEncoderWithDispatchType:"}, compute_encoder},
      {{"MTLCommandBuffer", "blitCommandEncoder"}, blit_encoder},
      {{"MTLCommandBuffer", "encodeSignalEvent:value:"}, signal_event},
      {{"MTLCommandBuffer", "commit"}, commit},
      {{"MTLCommandBuffer", "status"}, status},
      {{"MTLCommandBuffer", "error"}, error},
      {{"MTLCommandBuffer", "waitUntilCompleted"}, wait_until_completed},
      {{"MTLSharedEvent", "waitUntilSignaledValue:timeoutMS:"}, wait_for_value},
      {{"MTLComputeCommandEncoder", "waitForFence:"}, wait_for_fence},
      {{"MTLComputeCommandEncoder", "updateFence:"}, update_fence},
      {{"MTLComputeCommandEncoder", "memoryBarrierWithScope:"}, memory_barrier},
      {{"MTLComputeCommandEncoder", "setComputePipelineState:"}, set_pipeline},
      {{"MTLComputeCommandEncoder", "setBuffer:offset:atIndex:"}, set_buffer},
      {{"MTLComputeCommandEncoder", "setBytes:length:atIndex:"}, set_bytes},
      {{"MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:"}, dispatch},
      {{"MTLComputeCommandEncoder", "endEncoding"}, end_encoding},
      {{"MTLBlitCommandEncoder", "waitForFence:"}, wait_for_fence},
      {{"MTLBlitCommandEncoder", "updateFence:"}, update_fence},
      {{"MTLBlitCommandEncoder", "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:"},
       copy},
      {{"MTLBlitCommandEncoder", "fillBuffer:range:value:"}, fill},
      {{"MTLBlitCommandEncoder", "endEncoding"}, end_encoding},
  };
  return table;
}

}  // namespace hearth::backend::gpu::metal
