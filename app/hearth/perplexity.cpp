/// `hearth perplexity`: how well a model predicts a text.

#include "engine/perplexity.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "commands.h"
#include "engine/runner.h"
#include "graph/step.h"
#include "model_options.h"

namespace hearth::app {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  std::int64_t context = 512;
  bool json = false;
};

/// Rows of one step: every row has logits, and those stay below this.
constexpr std::int64_t max_logit_bytes = 64 << 20;
constexpr std::int64_t max_rows = 512;

std::int64_t rows_per_step(std::int64_t vocab, std::int64_t context) {
  const std::int64_t row_bytes = vocab * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(max_logit_bytes / row_bytes, 1, std::min(max_rows, context));
}

Result<std::vector<TokenId>> tokens_of(const std::string& path, const model::Model& model) {
  HEARTH_ASSIGN(const auto file, MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  return model.tokenizer().encode(text, tokenizer::Tokenizer::Frame::add);
}

Result<int> perplexity(const PerplexityOptions& options, Console& console) {
  HEARTH_ASSIGN(const auto open, open_model(options.model));
  HEARTH_ASSIGN(const auto tokens, tokens_of(options.file, *open.model));
  const auto rows = rows_per_step(open.model->params().vocab, options.context);
  HEARTH_ASSIGN(const auto runner,
                engine::Runner::create(
                    *open.model, *open.backend,
                    {.kv_dtype = options.model.kv_dtype,
                     .n_kv_blocks = ceil_div(options.context, std::int64_t{graph::kv_block_tokens}),
                     .max_rows = rows,
                     .max_logit_rows = rows}));
  std::int64_t n_pieces = 0;
  const auto tell = [&](std::int64_t done, std::int64_t total, const engine::Perplexity& so_far) {
    n_pieces = total;
    if (console.talk_is_terminal) {
      console.talk << format("\r{}/{} contexts, perplexity {:.4f} ", done, total, so_far.value())
                   << std::flush;
    }
  };
  const auto measured = engine::measure_perplexity(*runner, tokens, options.context, tell);
  if (console.talk_is_terminal && n_pieces > 0) {
    console.talk << '\n';
  }
  if (!measured) {
    return fail(measured.error().code, "{}: {}", options.file, measured.error().message);
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"model", replace_invalid_utf8(open.model->name())},
                                      {"perplexity", measured->value()},
                                      {"error", measured->error()},
                                      {"n_tokens", tokens.size()},
                                      {"n_scored", measured->n_scored},
                                      {"n_contexts", n_pieces},
                                      {"context", options.context}};
    console.out << json.dump(2) << '\n';
  } else {
    console.out << format("perplexity {:.4f} +- {:.4f} ({} tokens scored in {} contexts of {})\n",
                          measured->value(), measured->error(), measured->n_scored, n_pieces,
                          options.context);
  }
  return 0;
}

}  // namespace

Action declare_perplexity(CLI::App& app) {
  auto options = std::make_shared<PerplexityOptions>();
  add_model_argument(app, options->model.model);
  app.add_option("FILE", options->file, "The text, in UTF-8")->required();
  app.add_option("-c,--context", options->context,
                 "Tokens of one context; the second half of each is scored")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 24))
      ->capture_default_str();
  add_backend_options(app, options->model);
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return perplexity(*options, console); };
}

}  // namespace hearth::app
