#pragma once
/// Options of the commands that can guess tokens ahead.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "model_options.h"

namespace CLI {
class App;
}

namespace hearth::app {

struct DraftOptions {
  std::string model;                  // empty: none
  std::optional<std::int64_t> depth;  // guesses per step; nullopt: as many as gain time
};

/// Guesses per step, at most.
std::int64_t max_draft_depth(const DraftOptions& options);

/// Adds --draft-model and --draft-depth. `options` must outlive `app`.
void add_draft_options(CLI::App& app, DraftOptions& options);

/// The model, with its MTP head from the file of --draft-model if that has nothing else.
/// Errors: those of open_model() and of that file.
Result<OpenModel> open_model_with_head(const ModelOptions& options, const DraftOptions& draft);

/// An engine with what it borrows. Move-only.
struct OpenEngine {
  std::unique_ptr<const model::Model> draft_model;  // nullptr: none
  std::unique_ptr<engine::Engine> engine;
};

/// Errors: those of the draft model's file, of ModelDrafter and of Engine.
Result<OpenEngine> open_engine(const OpenModel& open, const DraftOptions& draft,
                               engine::EngineOptions options);

}  // namespace hearth::app
