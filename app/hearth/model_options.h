#pragma once
/// Options of the commands that compute with a model, and what they open.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "base/result.h"
#include "model/model.h"
#include "tensor/dtype.h"

namespace CLI {
class App;
}

namespace hearth::app {

struct ModelOptions {
  std::string model;
  int n_threads = 0;  // 0: every core this process may use
  DType kv_dtype = DType::f16;
  std::string device = "auto";
  backend::WeightLayout layout = backend::WeightLayout::automatic;
  bool keeps_tiles = false;  // in a file, for the next start
};

/// Adds the argument MODEL alone.
void add_model_argument(CLI::App& app, std::string& model);
/// Adds --threads and --device, of both functions. `options` must outlive `app`.
void add_device_options(CLI::App& app, ModelOptions& options);
/// Adds --kv-type, --weights and --tile-cache too.
void add_backend_options(CLI::App& app, ModelOptions& options);

/// A model on a backend. Move-only.
struct OpenModel {
  std::unique_ptr<const model::Model> model;
  std::unique_ptr<backend::Backend> backend;
  std::string device_reason;     // why the backend was chosen, if not by the user
  bool has_joined_head = false;  // its MTP head has a file of its own

  /// One line for people: the backend, and why it was chosen.
  [[nodiscard]] std::string device() const;

  /// Bytes of weights in the file mapping.
  [[nodiscard]] std::int64_t weight_bytes() const;
};

/// Errors: those of find_model(), of the file and of the backend.
Result<OpenModel> open_model(const ModelOptions& options,
                             std::optional<model::Checkpoint> draft_head = std::nullopt);

}  // namespace hearth::app
