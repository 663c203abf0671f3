#include "draft_options.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "base/fail.h"
#include "engine/speculate/model_drafter.h"
#include "find_model.h"
#include "model/draft_head.h"

namespace hearth::app {
namespace {

constexpr std::int64_t max_depth = 7;
constexpr std::int64_t max_adaptive_depth = 4;  // more guesses are rarely right
constexpr const char* automatic = "auto";

}  // namespace

std::int64_t max_draft_depth(const DraftOptions& options) {
  return options.depth.value_or(max_adaptive_depth);
}

void add_draft_options(CLI::App& app, DraftOptions& options) {
  app.add_option(
      "--draft-model", options.model,
      "A smaller model with the same vocabulary, or a file with the model's MTP head, which "
      "guesses tokens ahead; answers stay what they are");
  app.add_option_function<std::string>(
         "--draft-depth",
         [&options](const std::string& depth) {
           if (depth != automatic) {
             options.depth = std::stoll(depth);
           }
         },
         "Tokens to guess per step, 0 to 7, or auto: as many as gain time")
      ->check(CLI::IsMember({automatic}) | CLI::Range(std::int64_t{0}, max_depth))
      ->default_str(automatic);
}

Result<OpenModel> open_model_with_head(const ModelOptions& options, const DraftOptions& draft) {
  if (draft.model.empty()) {
    return open_model(options);
  }
  HEARTH_ASSIGN(const auto path, find_model(draft.model, model_cache()));
  HEARTH_ASSIGN(auto file, model::Checkpoint::open(path));
  if (!model::is_draft_head(file)) {
    return open_model(options);
  }
  HEARTH_ASSIGN(auto open, open_model(options, std::move(file)));
  open.has_joined_head = true;
  return open;
}

Result<OpenEngine> open_engine(const OpenModel& open, const DraftOptions& draft,
                               engine::EngineOptions options) {
  OpenEngine opened;
  std::unique_ptr<engine::Drafter> drafter;
  options.speculation = {.max_depth = max_draft_depth(draft), .is_adaptive = !draft.depth};
  if (draft.model.empty() && open.model->mtp() == nullptr && draft.depth.value_or(0) > 0) {
    return fail(ErrorCode::invalid_argument,
                "--draft-depth {}: {} has no MTP head to guess with, expected --draft-model",
                *draft.depth, open.model->name());
  }
  if (!draft.model.empty() && !open.has_joined_head && options.speculation.max_depth > 0) {
    HEARTH_ASSIGN(const auto path, find_model(draft.model, model_cache()));
    HEARTH_ASSIGN(opened.draft_model, model::Model::open(path));
    HEARTH_ASSIGN(drafter,
                  engine::ModelDrafter::create(*opened.draft_model, *open.model, *open.backend,
                                               {.context = options.context,
                                                .max_sequences = options.max_sequences,
                                                .max_depth = options.speculation.max_depth,
                                                .max_rows = open.backend->prompt_rows(),
                                                .kv_dtype = options.kv_dtype}));
  }
  HEARTH_ASSIGN(opened.engine,
                engine::Engine::create(*open.model, *open.backend, options, std::move(drafter)));
  return opened;
}

}  // namespace hearth::app
