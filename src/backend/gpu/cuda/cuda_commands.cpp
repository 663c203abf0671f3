#include "backend/gpu/cuda/cuda_commands.h"

#include <utility>
#include <variant>

namespace hearth::backend::gpu::cuda {
namespace {

/// Calls the driver once per command, while its stream is captured. A stream keeps the order, so
/// barriers ask for nothing.
class Capture {
 public:
  Capture(const Driver& driver, const std::vector<Function>& functions)
      : driver_(driver), function_(functions.begin()) {}

  Result<void> operator()(const DispatchCommand& command) {
    std::vector<Address> addresses;
    for (const BufferPart& part : command.buffers) {
      addresses.push_back(part.addresses().begin);
    }
    std::vector<void*> arguments;  // where each buffer's address is, then the parameters
    for (Address& address : addresses) {
      arguments.push_back(&address);
    }
    arguments.push_back(const_cast<std::byte*>(command.params.data()));
    const Dim3& grid = command.grid;
    const Dim3& group = command.group_size;
    static constexpr LaunchAttribute early{LaunchAttribute::Id::early_launch, 0, {1}};
    const LaunchConfig config{.grid_x = grid.x,
                              .grid_y = grid.y,
                              .grid_z = grid.z,
                              .group_x = group.x,
                              .group_y = group.y,
                              .group_z = group.z,
                              .stream = driver_.stream(),
                              .attributes = &early,
                              .n_attributes = driver_.launches_early() ? 1u : 0u};
    const Status status =
        driver_.api().launch(&config, *function_++, arguments.data(), /*extra=*/nullptr);
    return driver_.check(status, kernel_info(command.kernel).name);
  }
  Result<void> operator()(const CopyCommand& command) const {
    return driver_.check(
        driver_.api().copy(command.to.addresses().begin, command.from.addresses().begin,
                           command.to.bytes, driver_.stream()),
        "copying on the card");
  }
  Result<void> operator()(const FillCommand& command) const {
    return driver_.check(driver_.api().fill(command.to.addresses().begin, command.value,
                                            command.to.bytes, driver_.stream()),
                         "filling memory");
  }
  Result<void> operator()(const BarrierCommand& /*barrier*/) const { return {}; }

 private:
  const Driver& driver_;
  std::vector<Function>::const_iterator function_;
};

}  // namespace

Result<std::unique_ptr<CudaCommands>> CudaCommands::record(std::shared_ptr<Driver> driver,
                                                           const CommandList& list,
                                                           CommandCounts counts,
                                                           const std::vector<Function>& functions) {
  std::unique_ptr<CudaCommands> commands(new CudaCommands(std::move(driver), list, counts));
  const Driver& card = *commands->driver_;
  HEARTH_TRY(card.check(card.api().begin_capture(card.stream(), CaptureMode::relaxed),
                        "beginning a graph"));
  Result<void> captured;
  Capture capture(card, functions);
  for (const Command& command : list.commands()) {
    if (captured) {
      captured = std::visit(capture, command);
    }
  }
  Graph graph = nullptr;  // the capture ends whatever became of it
  const Status ended = card.api().end_capture(card.stream(), &graph);
  HEARTH_TRY(captured);
  HEARTH_TRY(card.check(ended, "ending a graph"));
  const Status made = card.api().instantiate(&commands->graph_, graph, /*flags=*/0);
  card.api().destroy_graph(graph);
  HEARTH_TRY(card.check(made, "making a graph ready"));
  return commands;
}

CudaCommands::~CudaCommands() {
  if (graph_ != nullptr) {
    driver_->enter();
    driver_->api().destroy_exec(graph_);
  }
}

}  // namespace hearth::backend::gpu::cuda
