/// `hearth synth`: a model of random weights, to try a machine with before fetching a real one.

#include "model/synth/synth.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "command_line.h"
#include "commands.h"
#include "interrupts.h"
#include "model/synth/named_rows.h"
#include "output_file.h"
#include "printable.h"
#include "seed_option.h"

namespace hearth::app {
namespace {

struct SynthOptions {
  std::string shape;
  std::string path;
  std::string type = "Q4_K_M";
  std::uint64_t seed = 0;
  bool force = false;
  bool json = false;
};

void print_synth_report(const SynthOptions& options, const model::SynthReport& report,
                        double seconds, std::ostream& out) {
  const double bytes_per_s = static_cast<double>(report.weight_bytes) / seconds;
  if (options.json) {
    const nlohmann::ordered_json json{{"file", replace_invalid_utf8(options.path)},
                                      {"shape", options.shape},
                                      {"type", options.type},
                                      {"seed", options.seed},
                                      {"parameters", report.n_weights},
                                      {"tensor_bytes", report.weight_bytes},
                                      {"seconds", seconds},
                                      {"bytes_per_s", bytes_per_s}};
    out << json.dump(2) << '\n';
  } else {
    out << format("{}: {} {}, {:.1f} M parameters, {:.1f} MB in {:.1f} s ({:.0f} MB/s)\n",
                  printable(options.path), options.shape, options.type,
                  static_cast<double>(report.n_weights) / 1e6,
                  static_cast<double>(report.weight_bytes) / 1e6, seconds, bytes_per_s / 1e6);
  }
}

Result<int> synth(const SynthOptions& options, Console& console) {
  using Clock = std::chrono::steady_clock;
  HEARTH_ASSIGN(const auto* shape, model::find_model_shape(options.shape));
  HEARTH_ASSIGN(const auto* mixture, model::find_mixture(options.type));
  HEARTH_TRY(check_output_file(options.path, options.force));
  const Interrupts interrupts(Interrupts::Of::ctrl_c_and_termination);
  const auto tell = [&](std::int64_t done, std::int64_t total) {
    if (console.talk_is_terminal) {
      console.talk << format("\r{} of {} MB ", done / 1'000'000, total / 1'000'000) << std::flush;
    }
    return !interrupts.happened();
  };
  const auto start = Clock::now();
  const auto report =
      model::write_synthetic_model(options.path, *shape, *mixture, options.seed, tell);
  if (console.talk_is_terminal) {
    console.talk << '\n';
  }
  if (!report) {
    return report.error().code == ErrorCode::cancelled ? Result<int>(ExitCode::interrupted)
                                                       : Failure(report.error());
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  print_synth_report(options, *report, taken.count(), console.out);
  return ExitCode::succeeded;
}

}  // namespace

Action declare_synth(CLI::App& app) {
  auto options = std::make_shared<SynthOptions>();
  app.add_option("NAME", options->shape,
                 "The shape of the model: " + model::names_of(model::all_model_shapes()))
      ->required();
  app.add_option("OUT", options->path, "The GGUF file to write")->required();
  app.add_option("--type", options->type,
                 "How weights are stored: " + model::names_of(model::all_mixtures()))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "The same seed gives the same file")
      ->check(check_seed)
      ->capture_default_str();
  app.add_flag("--force", options->force, "Replace OUT when it exists");
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return synth(*options, console); };
}

}  // namespace hearth::app
