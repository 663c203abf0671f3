#include "model_options.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "base/assert.h"
#include "find_model.h"
#include "quant/types/q4_0.h"
#include "quant/types/q8_0.h"

namespace hearth::app {
namespace {

using BackendResult = Result<std::unique_ptr<backend::Backend>>;

struct BackendEntry {
  const char* name;
  BackendResult (*make)(const ModelOptions& options);
};

constexpr std::array backends{
    BackendEntry{"cpu",
                 [](const ModelOptions& options) {
                   return backend::make_cpu_backend(
                       {.n_threads = options.n_threads, .layout = options.layout});
                 }},
    BackendEntry{
        "reference",
        [](const ModelOptions&) -> BackendResult { return backend::make_reference_backend(); }},
};

const std::map<std::string, DType> kv_types{{"f32", DType::f32},
                                            {"f16", DType::f16},
                                            {"bf16", DType::bf16},
                                            {"q8_0", quant::Q8_0::info.dtype},
                                            {"q4_0", quant::Q4_0::info.dtype}};

const std::map<std::string, backend::WeightLayout> layouts{
    {"auto", backend::WeightLayout::automatic},
    {"tiles", backend::WeightLayout::tiles},
    {"mapped", backend::WeightLayout::mapped}};

}  // namespace

void add_model_argument(CLI::App& app, std::string& model) {
  app.add_option(
         "MODEL", model,
         "A GGUF file, a Hugging Face folder, or the name of a model that ./run has fetched")
      ->required();
}

void add_backend_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--threads", options.n_threads, "Threads (default: all cores of this process)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--kv-type", options.kv_dtype,
                 "How keys and values are stored: f32, f16, bf16, q8_0 or q4_0")
      ->transform(CLI::Transformer(kv_types).description(""))
      ->default_str("f16");
  app.add_option("--weights", options.layout,
                 "Where matrices lie: tiles (copied into the order in which they are read), mapped "
                 "(left in the file), or auto (tiles if they fit into memory)")
      ->transform(CLI::Transformer(layouts).description(""))
      ->default_str("auto");
  std::vector<std::string> names;
  for (const auto& entry : backends) {
    names.emplace_back(entry.name);
  }
  app.add_option("--backend", options.backend, "What computes: cpu or reference (slow)")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

std::int64_t OpenModel::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& tensor : model->checkpoint().tensors()) {
    bytes += static_cast<std::int64_t>(tensor.mapped.size());
  }
  return bytes;
}

Result<OpenModel> open_model(const ModelOptions& options) {
  HEARTH_ASSIGN(const auto path, find_model(options.model, model_cache()));
  HEARTH_ASSIGN(auto model, model::Model::open(path));
  const auto* entry = std::find_if(backends.begin(), backends.end(), [&](const auto& candidate) {
    return candidate.name == options.backend;
  });
  HEARTH_ASSERT(entry != backends.end());  // the parser has checked the name
  HEARTH_ASSIGN(auto backend, entry->make(options));
  return OpenModel{std::move(model), std::move(backend)};
}

}  // namespace hearth::app
