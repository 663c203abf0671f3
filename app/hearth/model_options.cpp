#include "model_options.h"

#include <map>
#include <utility>

#include <CLI/CLI.hpp>

#include "backend/cpu/cpu_backend.h"
#include "base/format.h"
#include "devices.h"
#include "find_model.h"
#include "quant/types/q4_0.h"
#include "quant/types/q8_0.h"

namespace hearth::app {
namespace {

const std::map<std::string, DType> kv_types{{"f32", DType::f32},
                                            {"f16", DType::f16},
                                            {"bf16", DType::bf16},
                                            {"q8_0", quant::Q8_0::info.dtype},
                                            {"q4_0", quant::Q4_0::info.dtype}};

const std::map<std::string, backend::WeightLayout> layouts{
    {"auto", backend::WeightLayout::automatic},
    {"tiles", backend::WeightLayout::tiles},
    {"mapped", backend::WeightLayout::mapped}};

Result<backend::TileCacheOptions> tile_cache_of(const model::Model& model) {
  const auto& checkpoint = model.checkpoint();
  backend::TileCacheOptions cache{.weights = &model.weights()};
  for (std::uint32_t shard = 0; shard < checkpoint.n_shards(); ++shard) {
    cache.model_files.emplace_back(checkpoint.shard_name(shard));
  }
  HEARTH_ASSIGN(cache.file, tile_cache_file(checkpoint.name()));
  return cache;
}

/// An option that takes one of the names in `values`, which must outlive `app`.
template <class Value>
void add_choice(CLI::App& app, const char* name, const std::map<std::string, Value>& values,
                Value& value, const char* help, const char* unless_given) {
  app.add_option_function<std::string>(
         name, [&](const std::string& chosen) { value = values.at(chosen); }, help)
      ->check(CLI::IsMember(values).description(""))
      ->default_str(unless_given);
}

}  // namespace

void add_model_argument(CLI::App& app, std::string& model) {
  app.add_option(
         "MODEL", model,
         "A GGUF file, a Hugging Face folder, or the name of a model that ./run has fetched")
      ->required();
}

void add_device_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--threads", options.n_threads, "Threads (default: all cores of this process)")
      ->check(CLI::Range(1, 1024));
  app.add_option(
         "--device", options.device,
         "What computes: auto (a GPU if it can run the model, else the processor), cpu, cuda, "
         "metal, emulator (the GPU's kernels on the processor, slow) or reference (slow)")
      ->check(CLI::IsMember(device_names()).description(""))
      ->capture_default_str();
}

void add_backend_options(CLI::App& app, ModelOptions& options) {
  add_device_options(app, options);
  add_choice(app, "--kv-type", kv_types, options.kv_dtype,
             "How keys and values are stored: f32, f16, bf16, q8_0 or q4_0", "f16");
  add_choice(app, "--weights", layouts, options.layout,
             "Where matrices lie: tiles (copied into the order in which they are read), mapped "
             "(left in the file), or auto (tiles if they fit into memory)",
             "auto");
  app.add_flag("--tile-cache", options.keeps_tiles,
               "Keep the tiles in a file, which the next start maps instead of making them again");
}

std::string OpenModel::device() const {
  return device_reason.empty() ? backend->description()
                               : format("{} ({})", backend->description(), device_reason);
}

std::int64_t OpenModel::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& tensor : model->checkpoint().tensors()) {
    bytes += static_cast<std::int64_t>(tensor.mapped.size());
  }
  return bytes;
}

Result<OpenModel> open_model(const ModelOptions& options,
                             std::optional<model::Checkpoint> draft_head) {
  HEARTH_ASSIGN(const auto path, find_model(options.model, model_cache()));
  HEARTH_ASSIGN(auto model, model::Model::open(path, std::move(draft_head)));
  backend::CpuOptions cpu{.n_threads = options.n_threads, .layout = options.layout};
  if (options.keeps_tiles) {
    HEARTH_ASSIGN(cpu.tile_cache, tile_cache_of(*model));
  }
  HEARTH_ASSIGN(auto device, open_device(options.device, cpu, model->weights()));
  return OpenModel{std::move(model), std::move(device.backend), std::move(device.reason)};
}

}  // namespace hearth::app
