#pragma once
/// The part of NVIDIA's driver API that is used here. The library is loaded at run time, so one
/// program runs with and without a card, and neither its header nor its stub is needed to build.
/// Names, types and numbers: CUDA Driver API reference manual, "Data types" and the functions of
/// the names below.

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace hearth::backend::gpu::cuda {

enum class Status : int {  // CUresult
  success = 0,
  out_of_memory = 2,
  no_device = 100,
  invalid_image = 200,
  no_binary_for_gpu = 209,
  unsupported_ptx_version = 222,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
};
using DeviceHandle = int;              // CUdevice
using Address = std::uint64_t;         // CUdeviceptr
using Context = struct ContextTag*;    // CUcontext
using Module = struct ModuleTag*;      // CUmodule
using Function = struct FunctionTag*;  // CUfunction
using Stream = struct StreamTag*;      // CUstream
using Event = struct EventTag*;        // CUevent
using Graph = struct GraphTag*;        // CUgraph
using GraphExec = struct ExecTag*;     // CUgraphExec

/// What may be asked of a launch: CUlaunchAttribute.
struct LaunchAttribute {
  enum class Id : int { early_launch = 6 };  // programmatic stream serialization

  Id id{};
  int padding = 0;
  std::uint64_t value[8]{};  // a union of 64 bytes; the first int is the flag
};
/// CUlaunchConfig
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned group_x = 1, group_y = 1, group_z = 1;
  unsigned shared_bytes = 0;
  Stream stream = nullptr;
  const LaunchAttribute* attributes = nullptr;
  unsigned n_attributes = 0;
};

enum class CaptureMode : int { relaxed = 2 };  // CUstreamCaptureMode

enum class Attribute : int {  // CUdevice_attribute
  multiprocessors = 16,
  compute_capability_major = 75,
  compute_capability_minor = 76,
};

/// The functions by their names in the library: symbol, name here, parameters.
#define HEARTH_CUDA_FUNCTIONS(X)                                                              \
  X(cuInit, init, (unsigned flags))                                                           \
  X(cuDriverGetVersion, driver_version, (int* version))                                       \
  X(cuDeviceGetCount, device_count, (int* count))                                             \
  X(cuDeviceGet, device, (DeviceHandle * device, int ordinal))                                \
  X(cuDeviceGetName, device_name, (char* name, int length, DeviceHandle device))              \
  X(cuDeviceGetAttribute, device_attribute, (int* value, Attribute, DeviceHandle device))     \
  X(cuDeviceTotalMem_v2, total_memory, (std::size_t* bytes, DeviceHandle device))             \
  X(cuCtxCreate_v2, create_context, (Context * context, unsigned flags, DeviceHandle device)) \
  X(cuCtxDestroy_v2, destroy_context, (Context context))                                      \
  X(cuCtxSetCurrent, set_context, (Context context))                                          \
  X(cuModuleLoadData, load_module, (Module * module, const void* image))                      \
  X(cuModuleUnload, unload_module, (Module module))                                           \
  X(cuModuleGetFunction, function, (Function * function, Module module, const char* name))    \
  X(cuMemAlloc_v2, allocate, (Address * address, std::size_t bytes))                          \
  X(cuMemFree_v2, free, (Address address))                                                    \
  X(cuMemGetInfo_v2, memory_info, (std::size_t* free, std::size_t* total))                    \
  X(cuMemHostAlloc, allocate_host, (void** memory, std::size_t bytes, unsigned flags))        \
  X(cuMemFreeHost, free_host, (void* memory))                                                 \
  X(cuMemcpyHtoDAsync_v2, upload, (Address to, const void* from, std::size_t bytes, Stream))  \
  X(cuMemcpyDtoHAsync_v2, download, (void* to, Address from, std::size_t bytes, Stream))      \
  X(cuMemcpyAsync, copy, (Address to, Address from, std::size_t bytes, Stream))               \
  X(cuMemsetD8Async, fill, (Address to, unsigned char value, std::size_t bytes, Stream))      \
  X(cuStreamCreate, create_stream, (Stream * stream, unsigned flags))                         \
  X(cuStreamDestroy_v2, destroy_stream, (Stream stream))                                      \
  X(cuStreamSynchronize, synchronize, (Stream stream))                                        \
  X(cuStreamBeginCapture_v2, begin_capture, (Stream stream, CaptureMode mode))                \
  X(cuStreamEndCapture, end_capture, (Stream stream, Graph * graph))                          \
  X(cuGraphInstantiateWithFlags, instantiate,                                                 \
    (GraphExec * exec, Graph graph, unsigned long long flags))                                \
  X(cuGraphDestroy, destroy_graph, (Graph graph))                                             \
  X(cuGraphExecDestroy, destroy_exec, (GraphExec exec))                                       \
  X(cuGraphLaunch, launch_graph, (GraphExec exec, Stream stream))                             \
  X(cuEventCreate, create_event, (Event * event, unsigned flags))                             \
  X(cuEventDestroy_v2, destroy_event, (Event event))                                          \
  X(cuEventRecord, record_event, (Event event, Stream stream))                                \
  X(cuEventQuery, query_event, (Event event))                                                 \
  X(cuGetErrorString, error_text, (Status status, const char** text))                         \
  X(cuLaunchKernelEx, launch,                                                                 \
    (const LaunchConfig* config, Function function, void** arguments, void** extra))

/// The library as a table of functions; tests fill in their own.
struct DriverApi {
#define HEARTH_CUDA_MEMBER(symbol, name, parameters) Status(*name) parameters = nullptr;
  HEARTH_CUDA_FUNCTIONS(HEARTH_CUDA_MEMBER)
#undef HEARTH_CUDA_MEMBER
};

/// Loads the driver's library. It stays loaded until the program ends.
/// Errors: unsupported, with one sentence for people: no driver here, or one that is too old.
Result<DriverApi> load_driver_api();

}  // namespace hearth::backend::gpu::cuda
