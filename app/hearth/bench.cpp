/// `hearth bench`: prefill and decode speed, beside the speed at which the same device reads
/// memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "backend/reference/reference_backend.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "commands.h"
#include "draft_options.h"
#include "engine/engine.h"
#include "model_options.h"
#include "parallel_decode.h"
#include "printable.h"
#include "quantiles.h"
#include "run_report.h"
#include "sampling/params.h"
#include "sampling_options.h"

namespace hearth::app {
namespace {

struct BenchOptions {
  ModelOptions model;
  DraftOptions draft;
  SamplingOptions sampling_options;
  std::int64_t n_prompt = 512;
  std::int64_t n_decode = 128;
  std::int64_t depth = 0;       // tokens before those
  std::int64_t n_parallel = 1;  // sequences that decode in one step
  int n_rounds = 5;
  bool no_check = false;
  bool json = false;

  sampling::SamplingParams sampling;  // of the tokens that are decoded
};

// Real prose, because routing, caches and branch predictors behave differently on random tokens.
constexpr std::string_view prose =
    "The river had been rising since Tuesday, and by the end of the week the lower meadows lay "
    "under a sheet of brown water that moved so slowly it seemed to be thinking. People came down "
    "from the village to look at it. They stood along the wall with their hands in their pockets "
    "and told each other what they remembered of other years: the year the bridge went, the year "
    "the mill was flooded to the second floor, the winter when it froze from bank to bank and the "
    "children walked across to school. Nobody was afraid yet. A flood, the old miller said, is "
    "like a guest who arrives early; one has to be polite and move the furniture. ";

constexpr std::int64_t n_checked = 64;  // tokens compared with the reference, at least
constexpr std::int64_t n_check_prompt = 16;
// Tokens with which each of several sequences begins, at least: those that begin alike would go on
// alike, and choose the same experts.
constexpr std::int64_t n_parallel_prompt = 4;
constexpr std::int64_t max_parallel = 1024;
constexpr double max_stream_spread = 0.2;  // beyond it, neighbours disturbed the run

/// `n` tokens of prose, repeated as often as needed.
Result<std::vector<TokenId>> prose_tokens(const model::Model& model, std::int64_t n) {
  HEARTH_ASSIGN(const auto once, model.tokenizer().encode(prose));
  HEARTH_ASSERT(!once.empty());
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; static_cast<std::int64_t>(i) < n; ++i) {
    tokens.push_back(once[i % once.size()]);
  }
  return tokens;
}

/// `n` tokens for each sequence that decodes. Each begins elsewhere; where all places are taken,
/// further ones take every second token, and so on.
Result<std::vector<std::vector<TokenId>>> parallel_prompts(const model::Model& model,
                                                           const BenchOptions& options,
                                                           std::int64_t n) {
  HEARTH_ASSIGN(const auto once, model.tokenizer().encode(prose));
  HEARTH_ASSERT(!once.empty());
  std::vector<std::vector<TokenId>> prompts(static_cast<std::size_t>(options.n_parallel));
  for (std::size_t sequence = 0; sequence < prompts.size(); ++sequence) {
    const std::size_t stride = 1 + sequence / once.size();
    for (std::size_t i = 0; static_cast<std::int64_t>(i) < n; ++i) {
      prompts[sequence].push_back(once[(sequence + i * stride) % once.size()]);
    }
  }
  return prompts;
}

/// Greedy and without end, so that the number of steps is known.
Result<Answer> generate(engine::Engine& engine, std::vector<TokenId> prompt, std::int64_t n) {
  static const AnswerWatcher nobody{.on_text = [](std::string_view) {},
                                    .is_interrupted = [] { return false; }};
  sampling::SamplingParams greedy;
  greedy.temperature = 0;
  return answer(engine,
                {.request = {.prompt = std::move(prompt),
                             .sampling = greedy,
                             .max_tokens = n,
                             .ignore_end_of_generation = true}},
                nobody);
}

/// What is left of `n` for each sequence.
std::int64_t share(std::int64_t n, const BenchOptions& options) {
  return ceil_div(n, options.n_parallel);
}

/// Tokens that the check chooses for each sequence: some of them in steps in which all decode.
std::int64_t checked_tokens(const BenchOptions& options) {
  return std::max<std::int64_t>(share(n_checked, options), 2);
}

Result<std::vector<std::vector<TokenId>>> decoded_tokens(const model::Model& model,
                                                         backend::Backend& backend,
                                                         const BenchOptions& options) {
  const std::int64_t n_prompt = share(n_check_prompt, options);
  const std::int64_t n = checked_tokens(options);
  HEARTH_ASSIGN(const auto engine,
                engine::Engine::create(model, backend,
                                       {.context = n_prompt + n,
                                        .max_sequences = options.n_parallel,
                                        .max_rows = options.n_parallel * n_prompt,
                                        .kv_dtype = options.model.kv_dtype}));
  HEARTH_ASSIGN(auto prompts, parallel_prompts(model, options, n_prompt));
  HEARTH_ASSIGN(auto answers, decode_in_parallel(*engine, std::move(prompts), options.sampling, n));
  return std::move(answers.tokens);
}

/// A backend whose tokens are wrong may not be timed. Errors: internal.
Result<void> check_against_reference(const OpenModel& open, const BenchOptions& options) {
  const auto reference = backend::make_reference_backend();
  HEARTH_ASSIGN(const auto expected, decoded_tokens(*open.model, *reference, options));
  HEARTH_ASSIGN(const auto found, decoded_tokens(*open.model, *open.backend, options));
  for (std::size_t sequence = 0; sequence < expected.size(); ++sequence) {
    const auto [wanted, is] = std::ranges::mismatch(expected[sequence], found[sequence]);
    if (wanted != expected[sequence].end()) {
      return fail(ErrorCode::internal,
                  "token {} of answer {} differs from the reference's, so there is nothing "
                  "to time",
                  wanted - expected[sequence].begin(), sequence);
    }
  }
  return {};
}

/// One sample per round of each.
struct Samples {
  std::vector<double> prefill;         // tokens/s
  std::vector<double> decode;          // tokens/s
  std::vector<double> stream;          // bytes/s, two per round
  std::vector<double> fraction;        // of the stream, by decode
  nlohmann::ordered_json speculation;  // over all rounds

  [[nodiscard]] double stream_spread() const {
    const auto [lowest, highest] = std::minmax_element(stream.begin(), stream.end());
    return *highest / *lowest - 1;
  }
};

/// What a step in which all sequences decode is made of.
struct DecodeStep {
  std::int64_t bytes = 0;
  std::int64_t launches = 0;
};

Result<DecodeStep> decode_step(engine::Runner& runner, const BenchOptions& options) {
  const std::int64_t n = options.n_parallel;
  HEARTH_ASSIGN(const auto cost, runner.cost(n, n));
  HEARTH_ASSIGN(const auto launches, runner.kernels(n, n));
  // Decode sees half of its own length on average, beside what was there before.
  return DecodeStep{.bytes = cost.bytes(n, options.depth + options.n_decode / 2),
                    .launches = static_cast<std::int64_t>(launches.size())};
}

/// Tokens before the decode of each sequence.
std::int64_t n_before_decode(const BenchOptions& options) {
  return std::max(options.depth, options.n_parallel > 1 ? n_parallel_prompt : 1);
}

/// For prefill and decode, and what sequences choose while others read their prompts.
engine::EngineOptions engine_options(const OpenModel& open, const BenchOptions& options) {
  const std::int64_t before = n_before_decode(options);
  // Prompts have half of the rows at least.
  const std::int64_t max_rows = std::max(open.backend->prompt_rows(), 2 * options.n_parallel);
  const std::int64_t lead =
      parallel_lead(before, options.n_parallel, max_rows, 1 + max_draft_depth(options.draft));
  return {.context = std::max(options.n_prompt + 1, before + lead + options.n_decode + 1),
          .max_sequences = options.n_parallel,
          .max_rows = max_rows,
          .kv_dtype = options.model.kv_dtype};
}

/// The processor's memory is taken when it is written to, so an engine may open with more than
/// there is. Errors: out_of_memory.
Result<void> check_memory(engine::Engine& engine, std::int64_t free_bytes) {
  const auto use = engine.runner().memory();
  const std::int64_t sum = use.weight_bytes + use.kv_bytes + use.state_bytes + use.workspace_bytes;
  if (sum > free_bytes) {
    return fail(ErrorCode::out_of_memory,
                "{} sequences of {} tokens take {} bytes of memory: weights {}, keys and values "
                "{}, recurrent state {}; there are {}",
                engine.max_sequences(), engine.context(), sum, use.weight_bytes, use.kv_bytes,
                use.state_bytes, free_bytes);
  }
  return {};
}

Result<Samples> measure(const OpenModel& open, const BenchOptions& options, DecodeStep& step,
                        Console& console) {
  const auto& model = *open.model;
  const std::int64_t free_bytes = open.backend->free_memory();
  HEARTH_ASSIGN(const auto opened, open_engine(open, options.draft, engine_options(open, options)));
  const auto& engine = opened.engine;
  HEARTH_TRY(check_memory(*engine, free_bytes));
  HEARTH_ASSIGN(step, decode_step(engine->runner(), options));
  HEARTH_ASSIGN(const auto prompt, prose_tokens(model, options.n_prompt));
  HEARTH_ASSIGN(const auto before_decode,
                parallel_prompts(model, options, n_before_decode(options)));
  HEARTH_ASSIGN(const auto stream, open.backend->read_stream());
  HEARTH_TRY(stream->measure());

  Samples samples;
  for (int round = 0; round <= options.n_rounds; ++round) {
    HEARTH_ASSIGN(const auto prefill, generate(*engine, prompt, 1));
    HEARTH_ASSIGN(const double before, stream->measure());
    HEARTH_ASSIGN(const auto decode,
                  decode_in_parallel(*engine, before_decode, options.sampling, options.n_decode));
    HEARTH_ASSIGN(const double after, stream->measure());
    if (round == 0) {
      continue;  // warm-up: page cache, plans, clocks
    }
    samples.prefill.push_back(prefill.timings.prompt_speed());
    samples.decode.push_back(decode.speed());
    samples.stream.insert(samples.stream.end(), {before, after});
    const double steps_per_s = decode.speed() / static_cast<double>(options.n_parallel);
    samples.fraction.push_back(steps_per_s * static_cast<double>(step.bytes) /
                               ((before + after) / 2));
    samples.speculation = to_json(engine->speculation());
    if (console.talk_is_terminal) {
      console.talk << format("\rround {}/{} ", round, options.n_rounds) << std::flush;
    }
  }
  if (console.talk_is_terminal) {
    console.talk << '\n';
  }
  return samples;
}

nlohmann::ordered_json quantiles_json(const Quantiles& quantiles) {
  return {{"median", quantiles.median}, {"p10", quantiles.p10}, {"p90", quantiles.p90}};
}

void print_line(std::ostream& out, std::string_view label, const std::vector<double>& samples,
                double scale, std::string_view unit) {
  const auto q = quantiles_of(samples);
  out << format("{:<16}{:>10.2f} {:<9} (p10 {:.2f}, p90 {:.2f})\n", label, q.median * scale, unit,
                q.p10 * scale, q.p90 * scale);
}

void print(const OpenModel& open, const BenchOptions& options, const Samples& samples,
           const DecodeStep& step, Console& console) {
  if (options.json) {
    const nlohmann::ordered_json json{
        {"model", replace_invalid_utf8(open.model->name())},
        {"device", open.device()},
        {"rounds", options.n_rounds},
        {"checked_tokens", options.no_check ? 0 : options.n_parallel * checked_tokens(options)},
        {"n_prompt", options.n_prompt},
        {"n_decode", options.n_decode},
        {"depth", options.depth},
        {"parallel", options.n_parallel},
        {"temperature", options.sampling.temperature},
        {"prefill_tokens_per_s", quantiles_json(quantiles_of(samples.prefill))},
        {"decode_tokens_per_s", quantiles_json(quantiles_of(samples.decode))},
        {"bytes_per_step", step.bytes},
        {"launches_per_step", step.launches},
        {"read_stream_bytes_per_s", quantiles_json(quantiles_of(samples.stream))},
        {"read_stream_spread", samples.stream_spread()},
        {"decode_fraction_of_stream", quantiles_json(quantiles_of(samples.fraction))},
        {"speculation", samples.speculation}};
    console.out << json.dump(2) << '\n';
  } else {
    std::ostream& out = console.out;
    out << format("{}, {}, {} round{}\n", printable(open.model->name()), open.device(),
                  options.n_rounds, options.n_rounds == 1 ? "" : "s");
    print_line(out, format("prefill {}", options.n_prompt), samples.prefill, 1, "tokens/s");
    const auto depth = options.depth == 0 ? "" : format(" at {}", options.depth);
    const auto times = options.n_parallel == 1 ? "" : format("{} x ", options.n_parallel);
    const auto how = options.sampling.temperature > 0 ? ", sampled" : "";
    print_line(out, format("decode {}{}{}{}", times, options.n_decode, depth, how), samples.decode,
               1, "tokens/s");
    out << format("{:<16}{:>10.2f} MB\n", "bytes per step", static_cast<double>(step.bytes) / 1e6);
    out << format("{:<16}{:>10}\n", "launches", step.launches);
    print_line(out, "read stream", samples.stream, 1e-9, "GB/s");
    print_line(out, "of the stream", samples.fraction, 100, "%");
    if (const auto& drafts = samples.speculation; !drafts.is_null()) {
      out << format("{:<16}{} of {} accepted, {:.2f} s saved\n", "drafts",
                    drafts["accepted"].get<std::int64_t>(), drafts["drafted"].get<std::int64_t>(),
                    drafts["saved_seconds"].get<double>());
    }
  }
  if (samples.stream_spread() > max_stream_spread) {
    console.talk << format(
        "hearth: warning: the read stream moved by {:.0f} % during the run; something else used "
        "this machine\n",
        100 * samples.stream_spread());
  }
}

Result<int> bench(BenchOptions options, Console& console) {
  HEARTH_ASSIGN(const auto open, open_model_with_head(options.model, options.draft));
  HEARTH_ASSIGN(options.sampling, choose_sampling(options.sampling_options, {.temperature = 0},
                                                  open.model->n_usable_tokens()));
  if (!options.no_check) {
    if (console.talk_is_terminal) {
      console.talk << format("comparing {} tokens with the reference\n",
                             options.n_parallel * checked_tokens(options));
    }
    HEARTH_TRY(check_against_reference(open, options));
  }
  DecodeStep step;
  HEARTH_ASSIGN(const auto samples, measure(open, options, step, console));
  print(open, options, samples, step, console);
  return 0;
}

}  // namespace

Action declare_bench(CLI::App& app) {
  auto options = std::make_shared<BenchOptions>();
  add_model_argument(app, options->model.model);
  app.add_option("-p,--prompt-tokens", options->n_prompt, "Tokens of the prefill")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("-n,--decode-tokens", options->n_decode, "Tokens of the decode")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("-d,--depth", options->depth, "Tokens that are there before the decode")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--parallel", options->n_parallel,
                 "Sequences that decode in the same steps, each with caches of its own")
      ->check(CLI::Range(std::int64_t{1}, max_parallel))
      ->capture_default_str();
  app.add_option("-r,--rounds", options->n_rounds, "Rounds that count, after one that does not")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--no-check", options->no_check, "Do not compare with the reference first");
  options->sampling_options.seed = 0;
  add_sampling_options(app, options->sampling_options);
  add_draft_options(app, options->draft);
  add_backend_options(app, options->model);
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return bench(*options, console); };
}

}  // namespace hearth::app
