#include "backend/gpu/cuda/driver.h"

#include "base/fail.h"

namespace hearth::backend::gpu::cuda {

Result<std::shared_ptr<Driver>> Driver::open(const DriverApi& api, const void* fatbin,
                                             int ordinal) {
  std::shared_ptr<Driver> driver(new Driver(api));
  HEARTH_TRY(driver->start(fatbin, ordinal));
  return driver;
}

Driver::~Driver() {
  if (context_ == nullptr) {
    return;
  }
  // Of a lost context nothing can be taken back, so nobody looks at the answers.
  enter();
  if (stream_ != nullptr) {
    api_.destroy_stream(stream_);
  }
  if (module_ != nullptr) {
    api_.unload_module(module_);
  }
  api_.destroy_context(context_);
}

Result<void> Driver::start(const void* fatbin, int ordinal) {
  const Status initialised = api_.init(0);
  int n_devices = 0;
  if (initialised == Status::success) {
    HEARTH_TRY(check(api_.device_count(&n_devices), "counting cards"));
  } else if (initialised != Status::no_device) {
    return check(initialised, "starting the driver");
  }
  if (n_devices == 0) {
    return fail(ErrorCode::unsupported, "the NVIDIA driver sees no card on this machine");
  }
  if (ordinal < 0 || ordinal >= n_devices) {
    return fail(ErrorCode::unsupported, "there is no card {}: the NVIDIA driver sees {} (from 0)",
                ordinal, n_devices);
  }
  HEARTH_TRY(check(api_.device(&device_, ordinal), "finding the card"));
  // A context of our own, not the one that a program shares, can be given up with all that is in
  // it.
  HEARTH_TRY(check(api_.create_context(&context_, /*flags=*/0, device_), "opening the card"));
  enter();
  HEARTH_TRY(load(fatbin));
  int major = 0;
  HEARTH_TRY(check(api_.device_attribute(&major, Attribute::compute_capability_major, device_),
                   "reading the card's properties"));
  launches_early_ = major >= 9;
  constexpr unsigned non_blocking = 1;  // with the default stream, which nobody uses
  return check(api_.create_stream(&stream_, non_blocking), "making a stream");
}

Result<void> Driver::load(const void* fatbin) {
  const Status loaded = api_.load_module(&module_, fatbin);
  if (loaded == Status::no_binary_for_gpu) {
    return fail(ErrorCode::unsupported,
                "this build has no kernels for the card: it needs compute capability 8.0 or newer");
  }
  if (loaded == Status::invalid_image || loaded == Status::unsupported_ptx_version) {
    int version = 0;
    api_.driver_version(&version);  // 1000 * major + 10 * minor
    return fail(ErrorCode::unsupported,
                "the NVIDIA driver is too old for this build: it knows CUDA up to {}.{}",
                version / 1000, version % 1000 / 10);
  }
  return check(loaded, "loading the kernels");
}

Result<void> Driver::check(Status status, std::string_view tried) const {
  if (status == Status::success) {
    return {};
  }
  const char* text = nullptr;
  api_.error_text(status, &text);
  return fail(ErrorCode::internal, "cuda: {} failed: {} (error {})", tried,
              text == nullptr ? "unknown error" : text, static_cast<int>(status));
}

}  // namespace hearth::backend::gpu::cuda
