#pragma once
/// Every message that is sent to Metal, with its exact type. Names, types and numbers: the
/// reference pages of the receivers on developer.apple.com; a test compares the table with
/// declarations of Apple's own (tests/golden/metal/).

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "backend/gpu/metal/runtime.h"

namespace hearth::backend::gpu::metal {

using UInteger = std::uint64_t;  // NSUInteger
using Integer = std::int64_t;    // NSInteger
using Block = struct BlockTag*;  // only null is ever passed

struct Size {  // MTLSize
  UInteger width;
  UInteger height;
  UInteger depth;
};
struct Range {  // NSRange
  UInteger location;
  UInteger length;
};

enum class StringEncoding : UInteger { utf8 = 4 };
enum class GpuFamily : Integer { apple7 = 1007 };                          // M1
enum class LanguageVersion : UInteger { v3_1 = 0x30001 };                  // macOS 14
enum class ResourceOptions : UInteger { shared_and_untracked = 1u << 8 };  // hazards are ours
enum class DispatchType : UInteger { concurrent = 1 };
enum class BarrierScope : UInteger { buffers = 1 };
enum class CommandBufferStatus : UInteger { completed = 4, error = 5 };

/// Types as the runtime spells them, without "const": Apple, "Objective-C Runtime Programming
/// Guide", Type Encodings.
template <class T>
constexpr std::string_view type_code() {
  if constexpr (std::is_enum_v<T>) {
    return type_code<std::underlying_type_t<T>>();
  } else if constexpr (std::is_void_v<T>) {
    return "v";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "B";
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return "C";
  } else if constexpr (std::is_same_v<T, UInteger>) {
    return "Q";
  } else if constexpr (std::is_same_v<T, Integer>) {
    return "q";
  } else if constexpr (std::is_same_v<T, Object>) {
    return "@";
  } else if constexpr (std::is_same_v<T, Object*>) {
    return "^@";
  } else if constexpr (std::is_same_v<T, Selector>) {
    return ":";
  } else if constexpr (std::is_same_v<T, Block>) {
    return "@?";
  } else if constexpr (std::is_same_v<T, const char*>) {
    return "*";
  } else if constexpr (std::is_same_v<T, void*> || std::is_same_v<T, const void*>) {
    return "^v";
  } else if constexpr (std::is_same_v<T, Size>) {
    return "{?=QQQ}";
  } else {
    static_assert(std::is_same_v<T, Range>);
    return "{_NSRange=QQ}";
  }
}

/// A message: sends its selector to a receiver, as a call of the exact type.
template <class Signature>
class Message;
template <class Answer, class... Parameters>
class Message<Answer(Parameters...)> {
 public:
  /// The answer's type, then the parameters'.
  static constexpr std::array<std::string_view, 1 + sizeof...(Parameters)> types{
      type_code<Answer>(), type_code<Parameters>()...};

  Message(const Runtime& runtime, const char* selector)
      : runtime_(&runtime), selector_(runtime.find_selector(selector)) {}

  Answer operator()(Object receiver, Parameters... parameters) const {
    const Method method = runtime_->find_method == nullptr
                              ? runtime_->send
                              : runtime_->find_method(receiver, selector_, types);
    return reinterpret_cast<Answer (*)(Object, Selector, Parameters...)>(method)(
        receiver, selector_, parameters...);
  }
  [[nodiscard]] Selector selector() const { return selector_; }

 private:
  const Runtime* runtime_;
  Selector selector_;
};

/// Receiver (a protocol, or a class if it is made by name), name here, selector, type.
// clang-format off
#define HEARTH_METAL_MESSAGES(X)                                                                    \
  X(NSObject, make, "new", Object())                                                                \
  X(NSObject, responds_to, "respondsToSelector:", bool(Selector))                                   \
  X(NSString, string_from, "stringWithCString:encoding:", Object(const char*, StringEncoding))      \
  X(NSString, utf8, "UTF8String", const char*())                                                    \
  X(NSError, error_code, "code", Integer())                                                         \
  X(NSError, error_text, "localizedDescription", Object())                                          \
  X(MTLDevice, device_name, "name", Object())                                                       \
  X(MTLDevice, architecture, "architecture", Object())                                              \
  X(MTLArchitecture, architecture_name, "name", Object())                                           \
  X(MTLDevice, supports_family, "supportsFamily:", bool(GpuFamily))                                 \
  X(MTLDevice, working_set_bytes, "recommendedMaxWorkingSetSize", UInteger())                       \
  X(MTLDevice, allocated_bytes, "currentAllocatedSize", UInteger())                                 \
  X(MTLDevice, max_buffer_bytes, "maxBufferLength", UInteger())                                     \
  X(MTLDevice, new_queue, "newCommandQueueWithMaxCommandBufferCount:", Object(UInteger))            \
  X(MTLDevice, new_fence, "newFence", Object())                                                     \
  X(MTLDevice, new_event, "newSharedEvent", Object())                                               \
  X(MTLDevice, new_buffer, "newBufferWithLength:options:", Object(UInteger, ResourceOptions))       \
  X(MTLDevice, new_wrapping_buffer, "newBufferWithBytesNoCopy:length:options:deallocator:",         \
    Object(void*, UInteger, ResourceOptions, Block))                                                \
  X(MTLDevice, new_library, "newLibraryWithSource:options:error:", Object(Object, Object, Object*)) \
  X(MTLDevice, new_pipeline, "newComputePipelineStateWithFunction:error:", Object(Object, Object*)) \
  X(MTLDevice, new_residency_set, "newResidencySetWithDescriptor:error:", Object(Object, Object*))  \
  X(MTLCompileOptions, set_language_version, "setLanguageVersion:", void(LanguageVersion))          \
  X(MTLCompileOptions, set_fast_math, "setFastMathEnabled:", void(bool))                            \
  X(MTLLibrary, new_function, "newFunctionWithName:", Object(Object))                               \
  X(MTLComputePipelineState, max_threads, "maxTotalThreadsPerThreadgroup", UInteger())              \
  X(MTLComputePipelineState, simdgroup_lanes, "threadExecutionWidth", UInteger())                   \
  X(MTLBuffer, contents, "contents", void*())                                                       \
  X(MTLResource, set_label, "setLabel:", void(Object))                                              \
  X(MTLResidencySet, add_allocation, "addAllocation:", void(Object))                                \
  X(MTLResidencySet, remove_allocation, "removeAllocation:", void(Object))                          \
  X(MTLResidencySet, commit_residency, "commit", void())                                            \
  X(MTLResidencySet, request_residency, "requestResidency", void())                                 \
  X(MTLCommandQueue, add_residency_set, "addResidencySet:", void(Object))                           \
  X(MTLCommandQueue, command_buffer, "commandBufferWithUnretainedReferences", Object())             \
  X(MTLCommandBuffer, compute_encoder, "computeCommandEncoderWithDispatchType:",                    \
    Object(DispatchType))                                                                           \
  X(MTLCommandBuffer, blit_encoder, "blitCommandEncoder", Object())                                 \
  X(MTLCommandBuffer, signal_event, "encodeSignalEvent:value:", void(Object, UInteger))             \
  X(MTLCommandBuffer, commit, "commit", void())                                                     \
  X(MTLCommandBuffer, status, "status", CommandBufferStatus())                                      \
  X(MTLCommandBuffer, error, "error", Object())                                                     \
  X(MTLCommandBuffer, wait_until_completed, "waitUntilCompleted", void())                           \
  X(MTLSharedEvent, wait_for_value, "waitUntilSignaledValue:timeoutMS:", bool(UInteger, UInteger))  \
  X(MTLCommandEncoder, end_encoding, "endEncoding", void())                                         \
  X(MTLComputeCommandEncoder, compute_wait, "waitForFence:", void(Object))                          \
  X(MTLComputeCommandEncoder, compute_update, "updateFence:", void(Object))                         \
  X(MTLComputeCommandEncoder, memory_barrier, "memoryBarrierWithScope:", void(BarrierScope))        \
  X(MTLComputeCommandEncoder, set_pipeline, "setComputePipelineState:", void(Object))               \
  X(MTLComputeCommandEncoder, set_buffer, "setBuffer:offset:atIndex:",                              \
    void(Object, UInteger, UInteger))                                                               \
  X(MTLComputeCommandEncoder, set_bytes, "setBytes:length:atIndex:",                                \
    void(const void*, UInteger, UInteger))                                                          \
  X(MTLComputeCommandEncoder, dispatch, "dispatchThreadgroups:threadsPerThreadgroup:",              \
    void(Size, Size))                                                                               \
  X(MTLBlitCommandEncoder, blit_wait, "waitForFence:", void(Object))                                \
  X(MTLBlitCommandEncoder, blit_update, "updateFence:", void(Object))                               \
  X(MTLBlitCommandEncoder, copy, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:",    \
    void(Object, UInteger, Object, UInteger, UInteger))                                             \
  X(MTLBlitCommandEncoder, fill, "fillBuffer:range:value:", void(Object, Range, std::uint8_t))
// clang-format on

/// The messages, with their selectors looked up. The runtime has to stay where it is.
struct Messages {
  explicit Messages(const Runtime& all) : runtime(&all) {}

  const Runtime* runtime;
#define HEARTH_METAL_MEMBER(receiver, name, selector, ...) \
  Message<__VA_ARGS__> name{*runtime, selector};
  HEARTH_METAL_MESSAGES(HEARTH_METAL_MEMBER)
#undef HEARTH_METAL_MEMBER
};

}  // namespace hearth::backend::gpu::metal
