#include "tests/backend/gpu/cuda/fake_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <gtest/gtest.h>

#include "backend/gpu/kernels/registry.h"

namespace hearth::backend::gpu::cuda {
namespace {

FakeDriver* fake = nullptr;  // the one that lives
thread_local bool has_context = false;

/// A handle that is no address of anything.
template <class Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr)
}
constexpr std::uintptr_t context_number = 0x100;
constexpr std::uintptr_t module_number = 0x200;
constexpr std::uintptr_t stream_number = 0x300;
constexpr std::uintptr_t event_number = 0x400;
constexpr std::uintptr_t graph_number = 0x500;

Status expect(bool condition, const char* what) {
  EXPECT_TRUE(condition) << what;
  return condition ? Status::success : Status::illegal_address;
}

using Memory = std::map<Address, std::vector<std::byte>>;

/// The allocation that holds an address, from there on.
std::span<std::byte> find_memory(Memory& memory, Address address) {
  auto found = memory.upper_bound(address);
  if (found != memory.begin()) {
    auto& [begin, bytes] = *--found;
    if (address - begin < bytes.size()) {
      return std::span(bytes).subspan(address - begin);
    }
  }
  return {};
}
std::span<std::byte> memory_at(Address address) {
  EXPECT_TRUE(has_context) << "a call without a context";
  const auto on_card = find_memory(fake->memory, address);
  const auto found = on_card.empty() ? find_memory(fake->host_memory, address) : on_card;
  EXPECT_FALSE(found.empty()) << "an address that was never allocated";
  return found;
}

/// Work on the stream: now, or later as part of the graph that is being captured.
Status start(std::function<Status()> work, Stream stream) {
  EXPECT_EQ(stream, handle<Stream>(stream_number)) << "an unknown stream";
  if (!fake->captured) {
    return work();
  }
  fake->captured->push_back(std::move(work));
  return Status::success;
}

Status copy(std::span<std::byte> to, const void* from, std::size_t bytes) {
  if (bytes > to.size()) {
    return expect(false, "a copy beyond the memory");
  }
  std::memcpy(to.data(), from, bytes);
  return Status::success;
}

/// A launch with the arguments that the driver takes a copy of.
struct FakeLaunch {
  const emulator::EmulatedKernel& kernel;
  std::vector<Address> addresses;
  std::vector<std::byte> params;
  Dim3 grid, group;

  [[nodiscard]] Status operator()() const {
    fake->launched.emplace_back(kernel.info.name);
    if (fake->launch_status != Status::success) {
      return fake->launch_status;
    }
    std::vector<emulator::MemoryRange> buffers;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const auto memory = memory_at(addresses[i]);
      buffers.push_back({memory.data(), memory.size(), kernel.info.buffer_list[i].name});
    }
    const auto result = fake->emulator.run(kernel, buffers, params, grid, group);
    EXPECT_TRUE(result) << result.error().message;
    return result ? Status::success : Status::illegal_address;
  }
};

Status launch(const LaunchConfig* config, Function function, void** arguments, void** extra) {
  EXPECT_EQ(config->shared_bytes, 0u);
  EXPECT_EQ(config->n_attributes, 1u);
  EXPECT_EQ(config->attributes->id, LaunchAttribute::Id::early_launch);
  EXPECT_EQ(extra, nullptr);
  const auto& kernel = *reinterpret_cast<const emulator::EmulatedKernel*>(function);
  FakeLaunch work{kernel,
                  {},
                  {},
                  {config->grid_x, config->grid_y, config->grid_z},
                  {config->group_x, config->group_y, config->group_z}};
  // As the driver does: an address for every buffer, then the parameters.
  for (std::uint32_t i = 0; i < kernel.info.n_buffers; ++i) {
    work.addresses.push_back(*static_cast<const Address*>(arguments[i]));
  }
  const auto* params = static_cast<const std::byte*>(arguments[kernel.info.n_buffers]);
  work.params.assign(params, params + kernel.info.param_bytes);
  return start(std::move(work), config->stream);
}

Status begin_capture(Stream stream, CaptureMode mode) {
  fake->captured.emplace();
  return expect(stream == handle<Stream>(stream_number) && mode == CaptureMode::relaxed,
                "a capture of an unknown stream");
}

Status end_capture(Stream, Graph* graph) {
  EXPECT_TRUE(fake->captured) << "no capture has begun";
  fake->graph = *std::exchange(fake->captured, std::nullopt);
  *graph = handle<Graph>(graph_number);
  return Status::success;
}

/// Graphs that can be launched are told apart by their address.
Status instantiate(GraphExec* exec, Graph graph, unsigned long long flags) {
  EXPECT_EQ(graph, handle<Graph>(graph_number));
  EXPECT_EQ(flags, 0u);
  fake->graphs.push_back(std::make_unique<FakeGraph>(fake->graph));
  *exec = reinterpret_cast<GraphExec>(fake->graphs.back().get());
  return Status::success;
}

auto find_graph(GraphExec exec) {
  return std::ranges::find_if(fake->graphs, [exec](const auto& graph) {
    return reinterpret_cast<GraphExec>(graph.get()) == exec;
  });
}

Status destroy_exec(GraphExec exec) {
  const auto found = find_graph(exec);
  if (found == fake->graphs.end()) {
    return expect(false, "a graph that is not in use");
  }
  fake->graphs.erase(found);
  return Status::success;
}

Status launch_graph(GraphExec exec, Stream stream) {
  const auto found = find_graph(exec);
  if (found == fake->graphs.end() || stream != handle<Stream>(stream_number)) {
    return expect(false, "a graph that is not in use, or an unknown stream");
  }
  for (const auto& work : **found) {
    if (const Status status = work(); status != Status::success) {
      return status;
    }
  }
  return Status::success;
}

Status allocate_host(void** memory, std::size_t bytes, unsigned /*flags*/) {
  if (bytes > fake->memory_bytes) {
    return Status::out_of_memory;
  }
  std::vector<std::byte> allocation(bytes, std::byte{0xff});
  *memory = allocation.data();
  fake->host_memory.emplace(reinterpret_cast<Address>(*memory), std::move(allocation));
  return Status::success;
}

Status allocate(Address* address, std::size_t bytes) {
  std::size_t in_use = 0;
  for (const auto& [begin, memory] : fake->memory) {
    in_use += memory.size();
  }
  if (bytes == 0 || bytes > fake->memory_bytes - in_use) {
    return Status::out_of_memory;
  }
  std::vector<std::byte> memory(bytes, std::byte{0xff});
  *address = reinterpret_cast<Address>(memory.data());
  fake->memory.emplace(*address, std::move(memory));
  return Status::success;
}

Status find_function(Function* function, Module module, const char* name) {
  EXPECT_EQ(module, handle<Module>(module_number));
  for (const auto* kernel : all_kernels()) {
    if (kernel->info.name == name) {
      *function = reinterpret_cast<Function>(const_cast<emulator::EmulatedKernel*>(kernel));
      return Status::success;
    }
  }
  return Status::not_found;
}

Status device_attribute(int* value, Attribute attribute, DeviceHandle /*device*/) {
  static const std::map<Attribute, int> values{{Attribute::multiprocessors, 132},
                                               {Attribute::compute_capability_major, 9},
                                               {Attribute::compute_capability_minor, 0}};
  *value = values.at(attribute);
  return Status::success;
}

/// Handles of one kind are counted; all of them have the same number.
template <class Handle>
Status make(Handle* made, std::uintptr_t number, int& count) {
  *made = handle<Handle>(number);
  ++count;
  return Status::success;
}
template <class Handle>
Status give_back(Handle given, std::uintptr_t number, int& count) {
  --count;
  return expect(given == handle<Handle>(number) && count >= 0, "a handle that is not in use");
}

}  // namespace

FakeDriver::FakeDriver() {
  fake = this;
}

FakeDriver::~FakeDriver() {
  EXPECT_EQ(n_contexts, 0);
  EXPECT_EQ(n_modules, 0);
  EXPECT_EQ(n_streams, 0);
  EXPECT_EQ(n_events, 0);
  EXPECT_TRUE(memory.empty());
  EXPECT_TRUE(host_memory.empty());
  EXPECT_TRUE(graphs.empty());
  fake = nullptr;
}

DriverApi FakeDriver::api() {  // NOLINT(readability-function-size): a table
  return {
      .init = [](unsigned) { return fake->n_devices < 0 ? Status::no_device : Status::success; },
      .driver_version =
          [](int* version) {
            *version = 12080;
            return Status::success;
          },
      .device_count =
          [](int* count) {
            *count = fake->n_devices;
            return Status::success;
          },
      .device =
          [](DeviceHandle* device, int ordinal) {
            *device = ordinal;
            return Status::success;
          },
      .device_name =
          [](char* name, int length, DeviceHandle) {
            std::strncpy(name, "Fake H200", static_cast<std::size_t>(length));
            return Status::success;
          },
      .device_attribute = device_attribute,
      .total_memory =
          [](std::size_t* bytes, DeviceHandle) {
            *bytes = fake->memory_bytes;
            return Status::success;
          },
      .create_context =
          [](Context* context, unsigned, DeviceHandle) {
            return make(context, context_number, fake->n_contexts);
          },
      .destroy_context =
          [](Context context) {
            has_context = false;
            return give_back(context, context_number, fake->n_contexts);
          },
      .set_context =
          [](Context context) {
            has_context = context == handle<Context>(context_number);
            return expect(has_context, "an unknown context");
          },
      .load_module =
          [](Module* module, const void*) {
            return fake->load_status == Status::success
                       ? make(module, module_number, fake->n_modules)
                       : fake->load_status;
          },
      .unload_module =
          [](Module module) { return give_back(module, module_number, fake->n_modules); },
      .function = find_function,
      .allocate = allocate,
      .free =
          [](Address address) {
            return expect(fake->memory.erase(address) == 1, "memory that is not in use");
          },
      .memory_info =
          [](std::size_t* free, std::size_t* total) {
            *total = fake->memory_bytes;
            *free = fake->memory_bytes;
            for (const auto& [begin, allocation] : fake->memory) {
              *free -= allocation.size();
            }
            return Status::success;
          },
      .allocate_host = allocate_host,
      .free_host =
          [](void* memory) {
            return expect(fake->host_memory.erase(reinterpret_cast<Address>(memory)) == 1,
                          "memory of the host that is not in use");
          },
      .upload =
          [](Address to, const void* from, std::size_t bytes, Stream stream) {
            return start([=] { return copy(memory_at(to), from, bytes); }, stream);
          },
      .download =
          [](void* to, Address from, std::size_t bytes, Stream stream) {
            return start(
                [=] {
                  return copy({static_cast<std::byte*>(to), bytes}, memory_at(from).data(), bytes);
                },
                stream);
          },
      .copy =
          [](Address to, Address from, std::size_t bytes, Stream stream) {
            return start([=] { return copy(memory_at(to), memory_at(from).data(), bytes); },
                         stream);
          },
      .fill =
          [](Address to, unsigned char value, std::size_t bytes, Stream stream) {
            return start(
                [=] {
                  const auto target = memory_at(to);
                  std::fill_n(target.begin(), std::min(bytes, target.size()), std::byte{value});
                  return expect(bytes <= target.size(), "a fill beyond the memory");
                },
                stream);
          },
      .create_stream = [](Stream* stream,
                          unsigned) { return make(stream, stream_number, fake->n_streams); },
      .destroy_stream =
          [](Stream stream) { return give_back(stream, stream_number, fake->n_streams); },
      .synchronize =
          [](Stream stream) {
            return expect(stream == handle<Stream>(stream_number), "an unknown stream");
          },
      .begin_capture = begin_capture,
      .end_capture = end_capture,
      .instantiate = instantiate,
      .destroy_graph =
          [](Graph graph) { return expect(graph == handle<Graph>(graph_number), "no graph"); },
      .destroy_exec = destroy_exec,
      .launch_graph = launch_graph,
      .create_event = [](Event* event,
                         unsigned) { return make(event, event_number, fake->n_events); },
      .destroy_event = [](Event event) { return give_back(event, event_number, fake->n_events); },
      .record_event =
          [](Event, Stream stream) {
            return expect(stream == handle<Stream>(stream_number), "an unknown stream");
          },
      .query_event =
          [](Event) {
            const bool is_busy = fake->n_busy_queries > 0;
            fake->n_busy_queries -= is_busy ? 1 : 0;
            return is_busy ? Status::not_ready : Status::success;
          },
      .error_text =
          [](Status, const char** text) {
            *text = "it said so";
            return Status::success;
          },
      .launch = launch,
  };
}

}  // namespace hearth::backend::gpu::cuda
