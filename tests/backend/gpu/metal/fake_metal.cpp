#include "tests/backend/gpu/metal/fake_metal.h"

#include <unistd.h>

#include "backend/gpu/kernels/registry.h"
#include "tests/backend/gpu/metal/fake_objects.h"

namespace hearth::backend::gpu::metal {
namespace {

FakeMetal* fake = nullptr;

// Foundation.
Object new_string(Object, Selector, const char* text, StringEncoding encoding) {
  EXPECT_EQ(encoding, StringEncoding::utf8);
  return pooled_object<FakeString>(text);
}
const char* characters(Object self, Selector) {
  return find<FakeString>(self).text.c_str();
}
Integer error_code(Object self, Selector) {
  return find<FakeError>(self).code;
}
Object error_text(Object self, Selector) {
  return pooled_object<FakeString>(find<FakeError>(self).text);
}
bool responds(Object self, Selector, Selector selector) {
  return fake->objects.responds(self, selector);
}

// What the GPU is.
Object gpu_name(Object, Selector) {
  return pooled_object<FakeString>("Fake M4 Max");
}
Object architecture(Object, Selector) {
  return pooled_object<FakeObject>("MTLArchitecture");
}
Object architecture_name(Object, Selector) {
  return pooled_object<FakeString>("applegpu_g16s");
}
bool supports_family(Object, Selector, GpuFamily family) {
  return family == GpuFamily::apple7 && !fake->is_old;
}
UInteger working_set_bytes(Object, Selector) {
  return fake->memory_bytes;
}
UInteger allocated_bytes(Object, Selector) {
  return fake->allocated_bytes;
}
UInteger max_buffer_bytes(Object, Selector) {
  return fake->largest_buffer;
}

// What it makes.
Object new_queue(Object, Selector, UInteger n_command_buffers) {
  EXPECT_GE(n_command_buffers, 64u);
  return new_object<FakeObject>("MTLCommandQueue");
}
Object new_fence(Object, Selector) {
  return new_object<FakeFence>();
}
Object new_event(Object, Selector) {
  return new_object<FakeEvent>();
}
Object new_buffer(Object, Selector, UInteger bytes, ResourceOptions options) {
  EXPECT_EQ(options, ResourceOptions::shared_and_untracked);
  return bytes == 0 ? nullptr : new_object<FakeBuffer>(static_cast<std::size_t>(bytes));
}
Object new_wrapping_buffer(Object, Selector, void* memory, UInteger bytes, ResourceOptions options,
                           Block deallocator) {
  const auto page = static_cast<UInteger>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(options, ResourceOptions::shared_and_untracked);
  EXPECT_EQ(deallocator, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % page, 0u);
  EXPECT_EQ(bytes % page, 0u);
  return new_object<FakeBuffer>(std::span(static_cast<std::byte*>(memory), bytes));
}
void* contents(Object self, Selector) {
  return find<FakeBuffer>(self).memory.data();
}
void set_label(Object, Selector, Object label) {
  EXPECT_NE(find<FakeString>(label).text, "");
}

// Kernels.
Object new_options(Object, Selector) {
  return new_object<FakeOptions>();
}
void set_language_version(Object self, Selector, LanguageVersion version) {
  find<FakeOptions>(self).version = version;
}
void set_fast_math(Object self, Selector, bool is_enabled) {
  find<FakeOptions>(self).has_fast_math = is_enabled;
}
Object refuse(Object* error, const std::string& text) {
  *error = pooled_object<FakeError>(3, text);
  return nullptr;
}
Object new_library(Object, Selector, Object source, Object options, Object* error) {
  EXPECT_EQ(find<FakeOptions>(options).version, LanguageVersion::v3_1);
  EXPECT_FALSE(find<FakeOptions>(options).has_fast_math);
  fake->source = find<FakeString>(source).text;
  return fake->library_refusal.empty() ? new_object<FakeObject>("MTLLibrary")
                                       : refuse(error, fake->library_refusal);
}
Object new_function(Object, Selector, Object name) {
  for (const auto* kernel : all_kernels()) {
    if (kernel->info.name == find<FakeString>(name).text && !fake->has_empty_library) {
      return new_object<FakeKernel>("MTLFunction", *kernel);
    }
  }
  return nullptr;
}
Object new_pipeline(Object, Selector, Object function, Object* error) {
  return fake->kernel_refusal.empty()
             ? new_object<FakeKernel>("MTLComputePipelineState", *find<FakeKernel>(function).kernel)
             : refuse(error, fake->kernel_refusal);
}
UInteger max_threads(Object, Selector) {
  return fake->most_threads;
}
UInteger simdgroup_lanes(Object, Selector) {
  return 32;
}

// Residency.
Object new_residency_descriptor(Object, Selector) {
  return new_object<FakeObject>("MTLResidencySetDescriptor");
}
Object new_residency_set(Object, Selector, Object descriptor, Object*) {
  expect_class(descriptor, "MTLResidencySetDescriptor");
  return new_object<FakeObject>("MTLResidencySet");
}
void add_allocation(Object, Selector, Object buffer) {
  fake->resident_once_committed.insert(find<FakeBuffer>(buffer).id());
}
void remove_allocation(Object, Selector, Object buffer) {
  EXPECT_EQ(fake->resident_once_committed.erase(buffer), 1u);
}
void commit_residency(Object, Selector) {
  fake->resident = fake->resident_once_committed;
}
void request_residency(Object, Selector) {
  ++fake->n_residency_requests;
}

FakeMethods all_methods() {
  FakeMethods table{
      {{"+NSString", "stringWithCString:encoding:"}, new_string},
      {{"NSString", "UTF8String"}, characters},
      {{"NSError", "code"}, error_code},
      {{"NSError", "localizedDescription"}, error_text},
      {{"MTLDevice", "respondsToSelector:"}, responds},
      {{"MTLDevice", "name"}, gpu_name},
      {{"MTLDevice", "architecture"}, architecture},
      {{"MTLArchitecture", "name"}, architecture_name},
      {{"MTLDevice", "supportsFamily:"}, supports_family},
      {{"MTLDevice", "recommendedMaxWorkingSetSize"}, working_set_bytes},
      {{"MTLDevice", "currentAllocatedSize"}, allocated_bytes},
      {{"MTLDevice", "maxBufferLength"}, max_buffer_bytes},
      {{"MTLDevice", "newCommandQueueWithMaxCommandBufferCount:"}, new_queue},
      {{"MTLDevice", "newFence"}, new_fence},
      {{"MTLDevice", "newSharedEvent"}, new_event},
      {{"MTLDevice", "newBufferWithLength:options:"}, new_buffer},
      {{"MTLDevice", "newBufferWithBytesNoCopy:length:options:deallocator:"}, new_wrapping_buffer},
      {{"MTLBuffer", "contents"}, contents},
      {{"MTLBuffer", "setLabel:"}, set_label},
      {{"+MTLCompileOptions", "new"}, new_options},
      {{"MTLCompileOptions", "setLanguageVersion:"}, set_language_version},
      {{"MTLCompileOptions", "setFastMathEnabled:"}, set_fast_math},
      {{"MTLDevice", "newLibraryWithSource:options:error:"}, new_library},
      {{"MTLLibrary", "newFunctionWithName:"}, new_function},
      {{"MTLDevice", "newComputePipelineStateWithFunction:error:"}, new_pipeline},
      {{"MTLComputePipelineState", "maxTotalThreadsPerThreadgroup"}, max_threads},
      {{"MTLComputePipelineState", "threadExecutionWidth"}, simdgroup_lanes},
      {{"+MTLResidencySetDescriptor", "new"}, new_residency_descriptor},
      {{"MTLDevice", "newResidencySetWithDescriptor:error:"}, new_residency_set},
      {{"MTLResidencySet", "addAllocation:"}, add_allocation},
      {{"MTLResidencySet", "removeAllocation:"}, remove_allocation},
      {{"MTLResidencySet", "commit"}, commit_residency},
      {{"MTLResidencySet", "requestResidency"}, request_residency},
  };
  table.insert(work_methods().begin(), work_methods().end());
  return table;
}

}  // namespace

FakeMetal& fake_metal() {
  return *fake;
}

FakeBuffer::FakeBuffer(std::size_t bytes)
    : FakeObject("MTLBuffer"), own(bytes, std::byte{0xff}), memory(own) {
  fake->allocated_bytes += bytes;
}

void FakeBuffer::end() {
  fake->allocated_bytes -= own.size();
  EXPECT_FALSE(fake->resident.contains(id())) << "a buffer that is still kept resident";
}

FakeMetal::FakeMetal() : objects(all_methods()) {
  fake = this;
}

FakeMetal::~FakeMetal() {
  EXPECT_EQ(allocated_bytes, 0u);
  EXPECT_TRUE(resident.empty());
}

void FakeMetal::become_macos_14() {
  objects.absent_selectors = {"newResidencySetWithDescriptor:error:", "addResidencySet:"};
}

Runtime FakeMetal::runtime() {
  Runtime runtime = FakeRuntime::functions();
  runtime.create_system_default_device = []() -> Object {
    return fake->has_gpu ? new_object<FakeObject>("MTLDevice") : nullptr;
  };
  return runtime;
}

}  // namespace hearth::backend::gpu::metal
