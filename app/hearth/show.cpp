/// `hearth show`: what a model file or folder holds. Works for every GGUF file, also for
/// architectures that nothing here can run and for vocabularies without tensors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/utf8.h"
#include "commands.h"
#include "count_text.h"
#include "find_model.h"
#include "metadata_value.h"
#include "model/architecture.h"
#include "model/checkpoint.h"
#include "model_options.h"
#include "printable.h"
#include "quant/registry.h"
#include "show_facts.h"

namespace hearth::app {
namespace {

using model::Checkpoint;
using nlohmann::ordered_json;

struct ShowOptions {
  std::string model;
  bool metadata = false;
  bool tensors = false;
  bool json = false;

  /// Without a choice, every part is shown.
  [[nodiscard]] bool shows_all() const { return !metadata && !tensors; }
};

constexpr std::string_view template_key = "tokenizer.chat_template";

/// Numbers of the summary, by their keys below the name of the architecture.
struct SummaryKey {
  const char* label;
  const char* key;
};
constexpr std::array summary_keys{
    SummaryKey{"context", "context_length"},     SummaryKey{"layers", "block_count"},
    SummaryKey{"embed", "embedding_length"},     SummaryKey{"ffn", "feed_forward_length"},
    SummaryKey{"heads", "attention.head_count"}, SummaryKey{"kv heads", "attention.head_count_kv"},
};

struct TypeTotal {
  std::size_t n_tensors = 0;
  std::int64_t n_weights = 0;
  std::int64_t n_bytes = 0;
};

std::map<std::string_view, TypeTotal> totals_by_type(const Checkpoint& file) {
  std::map<std::string_view, TypeTotal> totals;
  for (const auto& tensor : file.tensors()) {
    auto& total = totals[quant::name(tensor.dtype)];
    ++total.n_tensors;
    total.n_weights += tensor.shape.elements();
    total.n_bytes += tensor.n_bytes();
  }
  return totals;
}

TypeTotal total_of(const Checkpoint& file) {
  TypeTotal sum;
  for (const auto& [name, total] : totals_by_type(file)) {
    sum.n_tensors += total.n_tensors;
    sum.n_weights += total.n_weights;
    sum.n_bytes += total.n_bytes;
  }
  return sum;
}

/// nullptr when the file has no such key.
const formats::Value* value_of(const Checkpoint& file, std::string_view key) {
  const auto* entry = file.metadata().entry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

std::string_view text_of(const Checkpoint& file, std::string_view key) {
  const auto* value = value_of(file, key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  return text == nullptr ? std::string_view() : *text;
}

bool is_supported(std::string_view architecture) {
  const auto known = model::all_architectures();
  return std::any_of(known.begin(), known.end(),
                     [&](const auto& entry) { return entry.name == architecture; });
}

/// What of "context", "layers", ... the file says.
std::vector<std::pair<SummaryKey, const formats::Value*>> summary_values(const Checkpoint& file) {
  std::vector<std::pair<SummaryKey, const formats::Value*>> values;
  const auto prefix = std::string(text_of(file, "general.architecture")) + ".";
  for (const auto& summary : summary_keys) {
    if (const auto* value = value_of(file, prefix + summary.key)) {
      values.emplace_back(summary, value);
    }
  }
  return values;
}

// ----- for people
// ---------------------------------------------------------------------------------

std::string bytes_text(std::int64_t bytes) {
  return format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_row(std::ostream& out, std::string_view label, std::string_view value) {
  out << format("  {:<16}{}\n", label, value);
}

void print_summary(const Checkpoint& file, std::ostream& out) {
  const auto architecture = text_of(file, "general.architecture");
  const auto total = total_of(file);
  print_row(out, "file", printable(file.name()));
  if (file.n_shards() > 1) {
    print_row(out, "files", format("{}", file.n_shards()));
  }
  print_row(out, "format", file.format());
  print_row(out, "architecture",
            printable(architecture) + (is_supported(architecture) ? "" : " (cannot be run here)"));
  if (const auto name = text_of(file, "general.name"); !name.empty()) {
    print_row(out, "name", printable(name));
  }
  print_row(out, "parameters", count_text(total.n_weights));
  for (const auto& [summary, value] : summary_values(file)) {
    print_row(out, summary.label, to_text(*value));
  }
  print_row(out, "tokenizer", printable(text_of(file, "tokenizer.ggml.model")));
  print_row(out, "chat template", value_of(file, template_key) != nullptr ? "yes" : "no");
  print_row(out, "tensors", format("{}, {}", total.n_tensors, bytes_text(total.n_bytes)));
  for (const auto& note : file.notes()) {
    print_row(out, "note", printable(note));
  }
}

void print_types(const Checkpoint& file, std::ostream& out) {
  const auto totals = totals_by_type(file);
  if (totals.empty()) {
    return;
  }
  out << "\nTypes\n";
  for (const auto& [name, total] : totals) {
    out << format("  {:<14}{:>6} tensors {:>12} weights {:>14}\n", name, total.n_tensors,
                  count_text(total.n_weights), bytes_text(total.n_bytes));
  }
}

void print_metadata(const Checkpoint& file, std::ostream& out) {
  out << "Metadata\n";
  for (const auto& entry : file.metadata().entries()) {
    out << format("  {:<42} {:<7} {}\n", printable(entry.key),
                  formats::name_of(formats::type_of(entry.value)), to_text(entry.value));
  }
}

void print_tensors(const Checkpoint& file, std::ostream& out) {
  out << "Tensors\n";
  for (const auto& tensor : file.tensors()) {
    out << format("  {:<32} {:<8} {:<20} {:>12} bytes\n", printable(tensor.name),
                  quant::name(tensor.dtype), to_string(tensor.shape), tensor.n_bytes());
  }
}

void print(const Checkpoint& file, const ShowOptions& options, std::ostream& out) {
  if (options.shows_all()) {
    out << "Model\n";
    print_summary(file, out);
    print_facts(file, out);
    print_types(file, out);
  }
  if (options.shows_all() || options.metadata) {
    out << (options.shows_all() ? "\n" : "");
    print_metadata(file, out);
  }
  if (options.shows_all() || options.tensors) {
    out << (options.shows_all() || options.metadata ? "\n" : "");
    print_tensors(file, out);
  }
}

// ----- for programs
// -------------------------------------------------------------------------------

ordered_json summary_json(const Checkpoint& file) {
  const auto architecture = text_of(file, "general.architecture");
  const auto total = total_of(file);
  ordered_json json{{"file", replace_invalid_utf8(file.name())},
                    {"n_files", file.n_shards()},
                    {"format", file.format()},
                    {"architecture", replace_invalid_utf8(architecture)},
                    {"is_supported", is_supported(architecture)},
                    {"name", replace_invalid_utf8(text_of(file, "general.name"))},
                    {"parameters", total.n_weights}};
  for (const auto& [summary, value] : summary_values(file)) {
    json[summary.key] = to_json(*value);
  }
  json["tokenizer"] = replace_invalid_utf8(text_of(file, "tokenizer.ggml.model"));
  json["has_chat_template"] = value_of(file, template_key) != nullptr;
  json["tensor_bytes"] = total.n_bytes;
  json["notes"] = ordered_json::array();
  for (const auto& note : file.notes()) {
    json["notes"].push_back(replace_invalid_utf8(note));
  }
  for (const auto& [name, type_total] : totals_by_type(file)) {
    json["types"][std::string(name)] = {{"tensors", type_total.n_tensors},
                                        {"weights", type_total.n_weights},
                                        {"bytes", type_total.n_bytes}};
  }
  return json;
}

ordered_json metadata_json(const Checkpoint& file) {
  ordered_json json = ordered_json::object();
  for (const auto& entry : file.metadata().entries()) {
    json[replace_invalid_utf8(entry.key)] = to_json(entry.value);
  }
  return json;
}

ordered_json tensors_json(const Checkpoint& file) {
  ordered_json json = ordered_json::array();
  for (const auto& tensor : file.tensors()) {
    const auto dims = tensor.shape.dims();
    json.push_back({{"name", replace_invalid_utf8(tensor.name)},
                    {"type", quant::name(tensor.dtype)},
                    {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                    {"bytes", tensor.n_bytes()}});
  }
  return json;
}

ordered_json to_json(const Checkpoint& file, const ShowOptions& options) {
  ordered_json json = ordered_json::object();
  if (options.shows_all()) {
    json = summary_json(file);
    add_facts(file, json);
  }
  if (options.shows_all() || options.metadata) {
    json["metadata"] = metadata_json(file);
  }
  if (options.shows_all() || options.tensors) {
    json["tensors"] = tensors_json(file);
  }
  return json;
}

Result<int> show(const ShowOptions& options, Console& console) {
  HEARTH_ASSIGN(const auto path, find_model(options.model, model_cache()));
  HEARTH_ASSIGN(const auto file, Checkpoint::open(path));
  if (options.json) {
    console.out << to_json(file, options).dump(2) << '\n';
  } else {
    print(file, options, console.out);
  }
  return 0;
}

}  // namespace

Action declare_show(CLI::App& app) {
  auto options = std::make_shared<ShowOptions>();
  add_model_argument(app, options->model);
  app.add_flag("--metadata", options->metadata, "Only the metadata");
  app.add_flag("--tensors", options->tensors, "Only the tensors");
  app.add_flag("--json", options->json, "Print one JSON object");
  return [options](Console& console) { return show(*options, console); };
}

}  // namespace hearth::app
