#include "show_facts.h"

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "count_text.h"
#include "model/facts.h"
#include "quant/registry.h"

namespace hearth::app {
namespace {

using model::LayerKind;
using model::ModelFacts;

ModelFacts facts_of(const model::Checkpoint& file) {
  std::vector<model::TensorFacts> tensors;
  for (const auto& tensor : file.tensors()) {
    tensors.push_back({tensor.name, tensor.shape, tensor.n_bytes()});
  }
  return model::facts_of(file.metadata(), tensors);
}

/// "3 recurrent, 1 attention"
std::string runs_text(const std::vector<LayerKind>& layers, std::size_t n) {
  std::string text;
  for (std::size_t begin = 0; begin < n;) {
    std::size_t end = begin + 1;
    while (end < n && layers[end] == layers[begin]) {
      ++end;
    }
    text += format("{}{} {}", text.empty() ? "" : ", ", end - begin, name_of(layers[begin]));
    begin = end;
  }
  return text;
}

/// Length of the shortest beginning that the whole repeats.
std::size_t period_of(const std::vector<LayerKind>& layers) {
  for (std::size_t period = 1; period < layers.size(); ++period) {
    bool repeats = layers.size() % period == 0;
    for (std::size_t i = period; repeats && i < layers.size(); ++i) {
      repeats = layers[i] == layers[i - period];
    }
    if (repeats) {
      return period;
    }
  }
  return layers.size();
}

/// "10 x (3 recurrent, 1 attention)"
std::string layout_text(const std::vector<LayerKind>& layers) {
  const std::size_t period = period_of(layers);
  if (period <= 1 || period == layers.size()) {
    return runs_text(layers, layers.size());
  }
  return format("{} x ({})", layers.size() / period, runs_text(layers, period));
}

void print_row(std::ostream& out, std::string_view label, std::string_view value) {
  out << format("  {:<20}{}\n", label, value);
}

std::int64_t kv_bytes(const ModelFacts& facts, DType type) {
  return facts.kv_elements % quant::info(type).block_weights == 0
             ? quant::row_bytes(type, facts.kv_elements)
             : 0;
}

}  // namespace

void print_facts(const model::Checkpoint& file, std::ostream& out) {
  const auto facts = facts_of(file);
  if (facts.layers.empty() || facts.components.empty()) {
    return;
  }
  out << "\nNeeds\n";
  print_row(out, "layers", layout_text(facts.layers));
  print_row(out, "parameters",
            format("{}, of which a token reads {}", count_text(facts.n_parameters),
                   count_text(facts.n_active())));
  if (facts.n_prediction_parameters > 0) {
    print_row(out, "prediction", count_text(facts.n_prediction_parameters));
  }
  print_row(out, "KV per token", format("{} bytes in F16", kv_bytes(facts, DType::f16)));
  if (facts.state_bytes > 0) {
    print_row(out, "state per sequence", format("{} bytes", facts.state_bytes));
  }
  print_row(out, "read per token",
            format("{:.1f} MB of weights", static_cast<double>(facts.active_bytes()) / 1e6));
  for (const auto& component : facts.components) {
    print_row(
        out, format("  {}", component.name),
        format("{:>10.1f} MB  {:>10} of {}", static_cast<double>(component.active_bytes) / 1e6,
               count_text(component.n_active), count_text(component.n_parameters)));
  }
}

void add_facts(const model::Checkpoint& file, nlohmann::ordered_json& json) {
  const auto facts = facts_of(file);
  auto layers = nlohmann::ordered_json::array();
  for (const auto layer : facts.layers) {
    layers.push_back(name_of(layer));
  }
  auto components = nlohmann::ordered_json::object();
  for (const auto& component : facts.components) {
    components[std::string(component.name)] = {{"parameters", component.n_parameters},
                                               {"active_parameters", component.n_active},
                                               {"bytes_per_token", component.active_bytes}};
  }
  json["needs"] = {{"layers", std::move(layers)},
                   {"trunk_parameters", facts.n_parameters},
                   {"prediction_parameters", facts.n_prediction_parameters},
                   {"active_parameters", facts.n_active()},
                   {"kv_bytes_per_token",
                    {{"F16", kv_bytes(facts, DType::f16)},
                     {"Q8_0", kv_bytes(facts, quant::find("Q8_0")->dtype)},
                     {"Q4_0", kv_bytes(facts, quant::find("Q4_0")->dtype)}}},
                   {"state_bytes_per_sequence", facts.state_bytes},
                   {"bytes_per_token", facts.active_bytes()},
                   {"components", std::move(components)}};
}

}  // namespace hearth::app
