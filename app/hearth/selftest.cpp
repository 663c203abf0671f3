/// `hearth selftest`: every kind of operation on a device, compared with the reference bit for bit.
/// The output is made to be pasted into a report.

#include "engine/selftest/selftest.h"

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "commands.h"
#include "devices.h"
#include "model_options.h"

namespace hearth::app {
namespace {

using Kind = engine::ProbeOutcome::Kind;

struct SelfTestOptions {
  std::string filter;
  ModelOptions backend;
  bool no_speed = false;
  bool json = false;
};

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::same_bits:
      return "ok";
    case Kind::differs:
      return "DIFFERS";
    case Kind::refused:
      return "refused";
    case Kind::failed:
      return "FAILED";
  }
  return "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    text += format("{}{}", text.empty() ? "" : " ", word);
  }
  return text;
}

void print_outcome(std::ostream& out, const std::string& name,
                   const engine::ProbeOutcome& outcome) {
  const std::string speed =
      outcome.bytes_per_s ? format("{:.1f} GB/s", *outcome.bytes_per_s / 1e9) : "";
  const bool ran = outcome.kind == Kind::same_bits || outcome.kind == Kind::differs;
  out << format("{:<20} {:<8} {:<8} {:>12}  {}\n", name, name_of(outcome.kind),
                ran ? format("{:.1g}", outcome.largest_error) : "", speed,
                ran ? joined(outcome.kernels) : outcome.message)
      << std::flush;
}

nlohmann::ordered_json probe_json(const std::string& name, const engine::ProbeOutcome& outcome) {
  nlohmann::ordered_json json{{"name", name}, {"outcome", name_of(outcome.kind)}};
  if (!outcome.message.empty()) {
    json["message"] = outcome.message;
  } else {
    json["largest_error"] = outcome.largest_error;
    json["kernels"] = outcome.kernels;
  }
  if (outcome.bytes_per_s) {
    json["bytes_per_s"] = *outcome.bytes_per_s;
  }
  return json;
}

Result<int> selftest(const SelfTestOptions& options, Console& console) {
  HEARTH_ASSIGN(const auto device,
                open_device(options.backend.device, {.n_threads = options.backend.n_threads},
                            /*weights=*/{}));
  // These two are not made to be fast.
  const bool timed = !options.no_speed && options.backend.device != "reference" &&
                     options.backend.device != "emulator";
  if (!options.json) {
    console.out << format("{}\n", device.backend->description());
  }
  auto probes = nlohmann::ordered_json::array();
  std::int64_t n_ok = 0;
  std::int64_t n_refused = 0;
  std::int64_t n_wrong = 0;
  for (const auto& kind : engine::all_probes()) {
    if (kind.name.find(options.filter) == std::string::npos) {
      continue;
    }
    const auto outcome = engine::run_probe(kind, *device.backend, timed);
    ++(outcome.kind == Kind::same_bits ? n_ok
       : outcome.kind == Kind::refused ? n_refused
                                       : n_wrong);
    if (options.json) {
      probes.push_back(probe_json(kind.name, outcome));
    } else {
      print_outcome(console.out, kind.name, outcome);
    }
  }
  if (n_ok + n_refused + n_wrong == 0) {
    return fail(ErrorCode::invalid_argument, "no operation's name contains '{}'", options.filter);
  }
  if (options.json) {
    const nlohmann::ordered_json json{{"device", device.backend->description()},
                                      {"ok", n_ok},
                                      {"refused", n_refused},
                                      {"wrong", n_wrong},
                                      {"probes", probes}};
    console.out << json.dump(2) << '\n';
  } else {
    console.out << format("{} ok, {} refused, {} wrong\n", n_ok, n_refused, n_wrong);
  }
  return n_wrong == 0 ? 0 : 1;
}

}  // namespace

Action declare_selftest(CLI::App& app) {
  auto options = std::make_shared<SelfTestOptions>();
  app.add_option("OPERATION", options->filter, "Only operations whose names contain this");
  app.add_flag("--no-speed", options->no_speed, "Do not measure how fast they are");
  add_device_options(app, options->backend);
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return selftest(*options, console); };
}

}  // namespace hearth::app
