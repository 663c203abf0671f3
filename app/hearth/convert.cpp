/// `hearth convert`: a Hugging Face folder as one GGUF file.

#include "model/convert.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "command_line.h"
#include "commands.h"
#include "find_model.h"
#include "interrupts.h"
#include "model_options.h"
#include "output_file.h"
#include "printable.h"
#include "run_session.h"

namespace hearth::app {
namespace {

struct ConvertOptions {
  std::string model;
  std::string path;
  std::string type;
  bool force = false;
  bool json = false;
};

void print_convert_report(const ConvertOptions& options, const model::Checkpoint& checkpoint,
                          const model::ConvertReport& report, double seconds, std::ostream& out) {
  if (options.json) {
    nlohmann::ordered_json json{{"file", replace_invalid_utf8(options.path)},
                                {"from", replace_invalid_utf8(checkpoint.name())},
                                {"tensors", report.n_tensors},
                                {"parameters", report.n_weights},
                                {"tensor_bytes", report.tensor_bytes},
                                {"seconds", seconds},
                                {"notes", nlohmann::ordered_json::array()}};
    for (const auto& note : checkpoint.notes()) {
      json["notes"].push_back(replace_invalid_utf8(note));
    }
    out << json.dump(2) << '\n';
  } else {
    out << format("{}: {} tensors, {:.1f} M parameters, {:.1f} MB in {:.1f} s\n",
                  printable(options.path), report.n_tensors,
                  static_cast<double>(report.n_weights) / 1e6,
                  static_cast<double>(report.tensor_bytes) / 1e6, seconds);
  }
}

Result<int> convert(const ConvertOptions& options, Console& console) {
  using Clock = std::chrono::steady_clock;
  std::optional<DType> type;
  if (!options.type.empty()) {
    HEARTH_ASSIGN(type, model::find_target_type(options.type));
  }
  HEARTH_TRY(check_output_file(options.path, options.force));
  HEARTH_ASSIGN(const auto path, find_model(options.model, model_cache()));
  HEARTH_ASSIGN(const auto checkpoint, model::Checkpoint::open(path));
  for (const auto& note : checkpoint.notes()) {
    warn(console, note);
  }
  const Interrupts interrupts(Interrupts::Of::ctrl_c_and_termination);
  const auto tell = [&](std::int64_t done, std::int64_t total) {
    if (console.talk_is_terminal) {
      console.talk << format("\r{} of {} MB ", done / 1'000'000, total / 1'000'000) << std::flush;
    }
    return !interrupts.happened();
  };
  const auto start = Clock::now();
  const auto report = model::convert_to_gguf(checkpoint, options.path, type, tell);
  if (console.talk_is_terminal) {
    console.talk << '\n';
  }
  if (!report) {
    return report.error().code == ErrorCode::cancelled ? Result<int>(ExitCode::interrupted)
                                                       : Failure(report.error());
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  print_convert_report(options, checkpoint, *report, taken.count(), console.out);
  return ExitCode::succeeded;
}

}  // namespace

Action declare_convert(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  add_model_argument(app, options->model);
  app.add_option("OUT", options->path, "The GGUF file to write")->required();
  app.add_option(
      "--type", options->type,
      "How weights are stored: " + model::names_of_target_types() + " (default: as they are)");
  app.add_flag("--force", options->force, "Replace OUT when it exists");
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return convert(*options, console); };
}

}  // namespace hearth::app
