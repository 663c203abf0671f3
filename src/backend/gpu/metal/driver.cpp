#include "backend/gpu/metal/driver.h"

#include "base/fail.h"

namespace hearth::backend::gpu::metal {

Result<std::shared_ptr<Driver>> Driver::open(const Runtime& runtime, const std::string& source) {
  const Pool pool(runtime);
  std::shared_ptr<Driver> driver(new Driver(runtime));
  HEARTH_TRY(driver->start(source));
  return driver;
}

Result<void> Driver::start(const std::string& source) {
  device_ = own(runtime_.create_system_default_device());
  if (!device_) {
    return fail(ErrorCode::unsupported, "Metal sees no GPU on this machine");
  }
  if (!messages_.supports_family(device(), GpuFamily::apple7)) {
    return fail(ErrorCode::unsupported, "Metal's GPU '{}' is too old: expected Apple's M1 or newer",
                to_text(messages_.device_name(device())));
  }
  // With that many in flight, the next one would block. A step has a handful.
  constexpr UInteger max_command_buffers = 1024;
  queue_ = own(messages_.new_queue(device(), max_command_buffers));
  fence_ = own(messages_.new_fence(device()));
  event_ = own(messages_.new_event(device()));
  if (!queue_ || !fence_ || !event_) {
    return fail(ErrorCode::internal, "metal: making a command queue failed");
  }
  HEARTH_TRY(make_library(source));
  make_residency_set();
  return {};
}

Result<void> Driver::make_library(const std::string& source) {
  const Owned options = own(messages_.make(runtime_.find_class("MTLCompileOptions")));
  // Pinned, because newer versions change the meaning of what is written. It asks for macOS 14.
  messages_.set_language_version(options.get(), LanguageVersion::v3_1);
  messages_.set_fast_math(options.get(), false);
  Object error = nullptr;
  library_ = own(messages_.new_library(device(), to_string(source), options.get(), &error));
  if (!library_) {
    return fail(ErrorCode::unsupported, "metal: compiling the kernels failed: {}",
                error == nullptr ? "unknown error" : to_text(messages_.error_text(error)));
  }
  return {};
}

Result<Owned> Driver::make_pipeline(const std::string& kernel) const {
  const Owned function = own(messages_.new_function(library_.get(), to_string(kernel)));
  if (!function) {
    return fail(ErrorCode::unsupported, "metal: the library has no kernel '{}'", kernel);
  }
  Object error = nullptr;
  Owned pipeline = own(messages_.new_pipeline(device(), function.get(), &error));
  if (!pipeline) {
    return fail(ErrorCode::unsupported, "metal: compiling kernel '{}' failed: {}", kernel,
                error == nullptr ? "unknown error" : to_text(messages_.error_text(error)));
  }
  return pipeline;
}

void Driver::make_residency_set() {
  if (!messages_.responds_to(device(), messages_.new_residency_set.selector())) {
    return;
  }
  const Owned descriptor = own(messages_.make(runtime_.find_class("MTLResidencySetDescriptor")));
  Object error = nullptr;
  residency_set_ = own(messages_.new_residency_set(device(), descriptor.get(), &error));
  if (residency_set_) {
    messages_.add_residency_set(queue(), residency_set_.get());
  }
}

void Driver::keep_resident(Object buffer) {
  if (residency_set_) {
    messages_.add_allocation(residency_set_.get(), buffer);
    residency_changed_ = true;
  }
}

void Driver::let_go(Object buffer) {
  if (residency_set_) {
    messages_.remove_allocation(residency_set_.get(), buffer);
    messages_.commit_residency(residency_set_.get());  // before the buffer ends
  }
}

void Driver::settle_residency() {
  if (residency_changed_) {
    messages_.commit_residency(residency_set_.get());
    messages_.request_residency(residency_set_.get());
    residency_changed_ = false;
  }
}

Object Driver::to_string(const std::string& text) const {
  return messages_.string_from(runtime_.find_class("NSString"), text.c_str(), StringEncoding::utf8);
}

std::string Driver::to_text(Object string) const {
  const char* text = string == nullptr ? nullptr : messages_.utf8(string);
  return text == nullptr ? "" : text;
}

}  // namespace hearth::backend::gpu::metal
