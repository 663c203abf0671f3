#include "model/huggingface/mtp_in_gguf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/huggingface/family.h"
#include "model/huggingface/transforms.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

constexpr std::array<std::string_view, 2> head_prefixes{"mtp.", "model.mtp."};
constexpr std::string_view head_layer = "layers.0.";

/// The part of the name behind "mtp."; nullopt of any other tensor.
std::optional<std::string_view> name_in_head(std::string_view name) {
  for (const std::string_view prefix : head_prefixes) {
    if (name.starts_with(prefix)) {
      return name.substr(prefix.size());
    }
  }
  return std::nullopt;
}

/// Weights stored as their distance from one, as F32.
CheckpointTensor plus_one(CheckpointTensor tensor) {
  const DType stored = std::exchange(tensor.dtype, DType::f32);
  const Bytes data = std::exchange(tensor.mapped, {});
  const auto n = static_cast<std::size_t>(tensor.shape.elements());
  tensor.make = [stored, data, n](const formats::ByteSink& sink) {
    std::vector<float> weights(n);
    quant::decode(stored, data, weights);
    std::ranges::for_each(weights, [](float& weight) { weight += 1.0f; });
    return sink(std::as_bytes(std::span(weights)));
  };
  return tensor;
}

/// Matrices of one type and shape as one tensor with a further dimension.
CheckpointTensor stacked(const std::vector<const CheckpointTensor*>& matrices) {
  CheckpointTensor all = *matrices.front();
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(matrices.size())};
  dims.insert(dims.end(), all.shape.dims().begin(), all.shape.dims().end());
  all.shape = Shape(dims);
  all.mapped = {};
  std::vector<Bytes> parts;
  for (const CheckpointTensor* matrix : matrices) {
    parts.push_back(matrix->mapped);
  }
  all.make = [parts](const formats::ByteSink& sink) -> Result<void> {
    for (const Bytes part : parts) {
      HEARTH_TRY(sink(part));
    }
    return {};
  };
  return all;
}

/// One call of adopt_mtp_tensors.
class Head {
 public:
  explicit Head(std::span<const CheckpointTensor> tensors) {
    for (const CheckpointTensor& tensor : tensors) {
      if (const auto name = name_in_head(tensor.name)) {
        by_name_.emplace(*name, &tensor);
      }
    }
  }

  [[nodiscard]] std::size_t n_tensors() const { return by_name_.size(); }

  /// Applies rules to tensors below `from`; their canonical names get `to` in front.
  void apply(std::span<const TensorRule> rules, std::string_view from, const std::string& to);
  /// The first thing that rules applied so far have not found.
  [[nodiscard]] const std::optional<std::string>& missing() const { return missing_; }
  [[nodiscard]] std::vector<CheckpointTensor> take() { return std::move(made_); }

 private:
  [[nodiscard]] const CheckpointTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// The tensor of a rule under its name of training, made canonical.
  [[nodiscard]] std::optional<CheckpointTensor> convert(const TensorRule& rule,
                                                        std::string_view from) const;
  [[nodiscard]] std::vector<const CheckpointTensor*> experts(const std::string& pattern) const;

  std::map<std::string_view, const CheckpointTensor*> by_name_;
  std::vector<CheckpointTensor> made_;
  std::optional<std::string> missing_;
};

std::vector<const CheckpointTensor*> Head::experts(const std::string& pattern) const {
  const std::size_t star = pattern.find('*');
  std::vector<const CheckpointTensor*> found;
  while (const CheckpointTensor* next = find(
             pattern.substr(0, star) + std::to_string(found.size()) + pattern.substr(star + 1))) {
    found.push_back(next);
  }
  const bool is_stack = std::ranges::all_of(found, [&](const CheckpointTensor* expert) {
    return expert->shape == found.front()->shape && expert->dtype == found.front()->dtype &&
           expert->shape.rank() < Shape::max_rank;
  });
  return is_stack ? found : std::vector<const CheckpointTensor*>();
}

std::optional<CheckpointTensor> Head::convert(const TensorRule& rule, std::string_view from) const {
  const std::string name = std::string(from).append(rule.from);
  if (name.find('*') != std::string::npos) {
    const auto matrices = experts(name);
    return matrices.empty() ? std::nullopt : std::optional(stacked(matrices));
  }
  const CheckpointTensor* tensor = find(name);
  if (tensor == nullptr) {
    return std::nullopt;
  }
  const bool is_distance =
      rule.transform == zero_centred && quant::is_float_decodable(tensor->dtype);
  return is_distance ? plus_one(*tensor) : *tensor;
}

void Head::apply(std::span<const TensorRule> rules, std::string_view from, const std::string& to) {
  std::set<std::string_view> satisfied;  // by canonical name, and by name of training
  for (const TensorRule& rule : rules) {
    if (rule.only_with == ExpertLayout::split || satisfied.contains(rule.to)) {
      continue;
    }
    const CheckpointTensor* canonical = find(std::string(from).append(rule.to));
    auto tensor = canonical != nullptr ? std::optional(*canonical) : convert(rule, from);
    if (tensor) {
      tensor->name = to + std::string(rule.to);
      made_.push_back(*std::move(tensor));
      satisfied.insert({rule.to, rule.from});
    }
  }
  for (const TensorRule& rule : rules) {
    if (rule.is_required && !satisfied.contains(rule.to) && !satisfied.contains(rule.from) &&
        !missing_) {
      missing_ = std::string(from).append(rule.from);
    }
  }
}

std::int64_t number_of_blocks(const formats::Metadata& metadata, const std::string& key) {
  const auto count = metadata.find<std::uint32_t>(key);
  return count && *count ? std::int64_t{**count} : 0;
}

}  // namespace

void adopt_mtp_tensors(Checkpoint::Parts& parts) {
  Head head(parts.tensors);
  const auto architecture = parts.metadata.find<std::string_view>("general.architecture");
  const Family* family =
      architecture && *architecture ? find_family_of_architecture(**architecture) : nullptr;
  if (head.n_tensors() == 0 || family == nullptr || family->draft.empty()) {
    return;
  }
  const std::string prefix(family->architecture);
  const std::int64_t n_prediction =
      number_of_blocks(parts.metadata, prefix + ".nextn_predict_layers");
  const std::int64_t n_trunk =
      number_of_blocks(parts.metadata, prefix + ".block_count") - n_prediction;
  if (n_trunk < 1) {
    return;  // the architecture will refuse the file
  }
  const std::string block = format("blk.{}.", n_trunk);
  head.apply(family->draft, "", block);
  for (const auto& part : family->layer) {
    std::vector<TensorRule> rules;
    std::ranges::copy_if(part, std::back_inserter(rules), [](const TensorRule& rule) {
      return rule.applies_to != AppliesTo::recurrent_layers;
    });
    head.apply(rules, head_layer, block);
  }
  const bool is_taken = std::ranges::any_of(parts.tensors, [&](const CheckpointTensor& tensor) {
    return tensor.name.starts_with(block);
  });
  std::vector<CheckpointTensor> made = head.take();
  std::erase_if(parts.tensors, [](const CheckpointTensor& tensor) {
    return name_in_head(tensor.name).has_value();
  });
  if (is_taken || head.missing()) {
    parts.notes.push_back(format(
        "{} tensors of an MTP head (mtp.*) are left out: {}", head.n_tensors(),
        is_taken ? format("there are others, {}*", block)
                 : format("expected one called {}", formats::in_quotes("mtp." + *head.missing()))));
    return;
  }
  std::ranges::move(made, std::back_inserter(parts.tensors));
  parts.metadata.set(prefix + ".block_count", static_cast<std::uint32_t>(n_trunk + 1));
  parts.metadata.set(prefix + ".nextn_predict_layers", std::uint32_t{1});
}

}  // namespace hearth::model
