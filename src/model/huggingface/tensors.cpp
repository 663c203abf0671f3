#include "model/huggingface/tensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "formats/gguf/place.h"
#include "model/always_f32.h"
#include "model/huggingface/quantization.h"

namespace hearth::model {
namespace {

using formats::ElementType;
using formats::in_quotes;
using formats::SafetensorsTensor;

// What stands before the names of the tables; the longest that fits is taken away.
constexpr std::array<std::string_view, 4> prefixes{"model.language_model.", "language_model.model.",
                                                   "language_model.", "model."};
// Parts of multimodal models that are not the language model.
constexpr std::array<std::string_view, 6> other_parts{"model.visual.",
                                                      "visual.",
                                                      "model.vision_tower.",
                                                      "vision_tower.",
                                                      "model.multi_modal_projector.",
                                                      "multi_modal_projector."};
// Tensors of old exports that can be computed.
constexpr std::string_view computed_suffix = ".rotary_emb.inv_freq";
constexpr std::string_view scale_suffix = "_scale_inv";
constexpr std::string_view draft_prefix = "mtp.";
// What MLX has of a module that it quantized.
constexpr std::string_view weight_suffix = ".weight";
constexpr std::string_view scales_suffix = ".scales";
constexpr std::string_view biases_suffix = ".biases";
constexpr std::string_view convolution_suffix = "linear_attn.conv1d.weight";

template <std::size_t n>
const std::string_view* prefix_of(std::string_view name,
                                  const std::array<std::string_view, n>& candidates) {
  const auto* found = std::ranges::find_if(
      candidates, [name](std::string_view prefix) { return name.starts_with(prefix); });
  return found == candidates.end() ? nullptr : found;
}

/// Types that travel as they are.
bool is_weight_type(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

/// One call of read_tensors.
class Mapper {
 public:
  Mapper(const formats::SafetensorsModel& files, const Family& family, const Dimensions& dimensions,
         ExpertLayout experts, Quantization quantization)
      : files_(files),
        family_(family),
        dimensions_(dimensions),
        experts_(experts),
        quantization_(std::move(quantization)) {}

  /// Sorts the tensors of the folder by the names that the tables use.
  Result<void> take_stock();
  void expect_mlx_layout() { dimensions_.is_in_mlx_layout = true; }
  /// Leaves out the weight of a module, with what quantizes it.
  void drop(std::string_view module);
  [[nodiscard]] bool contains(std::string_view name) const { return by_name_.contains(name); }

  /// Applies rules to the tensors below `from`, for canonical names below `to`.
  Result<void> apply(std::span<const TensorRule> rules, std::string_view from, std::string_view to);
  Result<void> apply_layer(LayerKind kind, std::string_view from, std::int64_t block);
  /// The divisors of rotary frequencies, unless there are none.
  void add_divisors(const std::vector<float>& divisors);

  /// Errors: unsupported when a tensor was not used.
  Result<void> refuse_unused() const;
  FolderTensors finish() &&;

 private:
  /// The tensors that a rule names: one, or one for each expert; none when they are not there.
  Result<std::vector<GatherSource>> sources_of(const TensorRule& rule, std::string_view from);
  Result<GatherSource> source_of(const std::string& name, const SafetensorsTensor& tensor);
  Result<GatherSource> float8_source(const std::string& name, const SafetensorsTensor& tensor);
  Result<GatherSource> mlx_source(std::string_view name, const SafetensorsTensor& tensor);
  /// The tensor of that name, which counts as used; nullptr when it is not there.
  const SafetensorsTensor* use(const std::string& name);
  Result<void> add(const TensorRule& rule, std::string_view to, std::vector<GatherSource> sources);
  [[nodiscard]] const std::string& file_of(const SafetensorsTensor& tensor) const {
    return files_.shard_name(tensor.shard);
  }

  const formats::SafetensorsModel& files_;
  const Family& family_;
  Dimensions dimensions_;
  ExpertLayout experts_;
  Quantization quantization_;
  std::map<std::string, const SafetensorsTensor*, std::less<>> by_name_;
  std::set<std::string, std::less<>> used_;  // names of by_name_
  std::set<std::string, std::less<>> made_;  // canonical names
  FolderTensors result_;
  std::size_t n_other_parts_ = 0;
  std::size_t n_float8_ = 0;
  std::size_t n_mlx_ = 0;
};

/// A convolution as mlx-lm stores one, its taps in the middle.
bool is_mlx_convolution(const SafetensorsTensor& tensor) {
  return tensor.name.ends_with(convolution_suffix) && tensor.shape.size() == 3 &&
         tensor.shape[1] != 1 && tensor.shape[2] == 1;
}

void Mapper::drop(std::string_view module) {
  for (const std::string_view suffix : {weight_suffix, scales_suffix, biases_suffix}) {
    by_name_.erase(std::string(module).append(suffix));
  }
}

Result<void> Mapper::take_stock() {
  for (const SafetensorsTensor& tensor : files_.tensors()) {
    const std::string_view name = tensor.name;
    if (prefix_of(name, other_parts) != nullptr) {
      ++n_other_parts_;
      continue;
    }
    if (name.ends_with(computed_suffix)) {
      continue;
    }
    dimensions_.is_in_mlx_layout |= is_mlx_convolution(tensor);
    const std::string_view* prefix = prefix_of(name, prefixes);
    const std::string_view rest = name.substr(prefix == nullptr ? 0 : prefix->size());
    if (!by_name_.emplace(rest, &tensor).second) {
      return fail(ErrorCode::invalid_file, "{}: tensor {}: expected {} under one prefix, found two",
                  file_of(tensor), in_quotes(name), in_quotes(rest));
    }
  }
  return {};
}

Result<GatherSource> Mapper::float8_source(const std::string& name,
                                           const SafetensorsTensor& tensor) {
  const auto scales = by_name_.find(name + std::string(scale_suffix));
  const std::size_t rank = tensor.shape.size();
  if (!quantization_.float8 || scales == by_name_.end() || rank < 2) {
    return fail(ErrorCode::unsupported,
                "{}: tensor {}: expected FP8 with {} and a quantization_config, found one without",
                file_of(tensor), in_quotes(tensor.name),
                in_quotes(name + std::string(scale_suffix)));
  }
  std::vector<std::int64_t> expected = tensor.shape;
  expected[rank - 2] = ceil_div(expected[rank - 2], quantization_.float8->rows);
  expected[rank - 1] = ceil_div(expected[rank - 1], quantization_.float8->columns);
  const SafetensorsTensor& found = *scales->second;
  const bool is_number = found.type == ElementType::f32 || found.type == ElementType::bf16;
  if (found.shape != expected || !is_number) {
    return fail(ErrorCode::invalid_file,
                "{}: tensor {}: expected F32 or BF16 scales for blocks of {} x {}, found another "
                "type or shape",
                file_of(found), in_quotes(found.name), quantization_.float8->rows,
                quantization_.float8->columns);
  }
  n_float8_ += used_.insert(scales->first).second ? 1 : 0;  // halves of experts ask twice
  return GatherSource{&tensor, &found, quantization_.float8->rows, quantization_.float8->columns};
}

const SafetensorsTensor* Mapper::use(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return nullptr;
  }
  used_.insert(name);
  return found->second;
}

Result<GatherSource> Mapper::mlx_source(std::string_view name, const SafetensorsTensor& tensor) {
  const auto packing =
      quantization_.mlx && name.ends_with(weight_suffix)
          ? quantization_.mlx->packing_of(
                std::string_view(tensor.name).substr(0, tensor.name.size() - weight_suffix.size()))
          : std::nullopt;
  if (!packing) {
    return fail(ErrorCode::unsupported,
                "{}: tensor {}: expected U32 only where config.json says that MLX quantized it",
                file_of(tensor), in_quotes(tensor.name));
  }
  const std::string module(name.substr(0, name.size() - weight_suffix.size()));
  auto groups = match_mlx_groups(*packing, tensor, use(module + std::string(scales_suffix)),
                                 use(module + std::string(biases_suffix)));
  if (!groups) {
    return fail(groups.error().code, "{}: {}", file_of(tensor), groups.error().message);
  }
  ++n_mlx_;
  return GatherSource{.tensor = &tensor, .groups = std::move(*groups)};
}

Result<GatherSource> Mapper::source_of(const std::string& name, const SafetensorsTensor& tensor) {
  used_.insert(name);
  if (tensor.type == ElementType::f8_e4m3) {
    return float8_source(name, tensor);
  }
  if (tensor.type == ElementType::u32) {
    return mlx_source(name, tensor);
  }
  if (!is_weight_type(tensor.type)) {
    return fail(
        ErrorCode::unsupported,
        "{}: tensor {}: expected F32, F16, BF16, block-scaled FP8 or MLX's groups, found {}",
        file_of(tensor), in_quotes(tensor.name), formats::info(tensor.type).name);
  }
  return GatherSource{.tensor = &tensor};
}

Result<std::vector<GatherSource>> Mapper::sources_of(const TensorRule& rule,
                                                     std::string_view from) {
  const std::string pattern = std::string(from).append(rule.from);
  const std::size_t star = pattern.find('*');
  std::vector<std::string> names{pattern};
  if (star != std::string::npos) {
    names.clear();
    for (std::int64_t expert = 0; expert < dimensions_.n_experts; ++expert) {
      names.push_back(pattern.substr(0, star) + std::to_string(expert) + pattern.substr(star + 1));
    }
  }
  std::vector<GatherSource> sources;
  if (!contains(names.front())) {
    return sources;
  }
  for (const auto& name : names) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      return fail(ErrorCode::invalid_file, "{}: tensor {} is missing", files_.shard_name(0),
                  in_quotes(name));
    }
    HEARTH_ASSIGN(sources.emplace_back(), source_of(name, *found->second));
    const SafetensorsTensor& first = *sources.front().tensor;
    if (sources.back().shape() != sources.front().shape() ||
        sources.back().dtype() != sources.front().dtype()) {
      return fail(ErrorCode::invalid_file,
                  "{}: tensor {}: expected type and shape of {}, found others",
                  file_of(*found->second), in_quotes(found->second->name), in_quotes(first.name));
    }
  }
  return sources;
}

Result<void> Mapper::add(const TensorRule& rule, std::string_view to,
                         std::vector<GatherSource> sources) {
  const SafetensorsTensor& first = *sources.front().tensor;
  Gather gather{.from = first.name, .sources = std::move(sources)};
  gather.shape = gather.sources.front().shape();
  gather.dtype = gather.sources.front().dtype();
  gather.row_length = gather.shape.size() <= 1 ? 1 : gather.shape.back();
  if (rule.from.find('*') != std::string_view::npos) {
    gather.shape.insert(gather.shape.begin(), dimensions_.n_experts);
  }
  const std::string& file = file_of(first);
  if (first.data.empty()) {
    return fail(ErrorCode::invalid_file, "{}: tensor {}: expected numbers, found none", file,
                in_quotes(first.name));
  }
  if (rule.transform != nullptr) {
    if (auto done = rule.transform(dimensions_, gather); !done) {
      return fail(done.error().code, "{}: {}", file, done.error().message);
    }
  }
  std::string name = std::string(to).append(rule.to);
  if (is_always_f32(name, gather.shape.size())) {
    gather.dtype = DType::f32;
  }
  if (!made_.insert(name).second) {
    return fail(ErrorCode::invalid_file, "{}: tensor {}: expected one source of {}, found a second",
                file, in_quotes(first.name), in_quotes(name));
  }
  HEARTH_ASSIGN(result_.tensors.emplace_back(),
                model::finish(std::move(gather), std::move(name), file));
  return {};
}

Result<void> Mapper::apply(std::span<const TensorRule> rules, std::string_view from,
                           std::string_view to) {
  for (const TensorRule& rule : rules) {
    HEARTH_ASSIGN(auto sources, sources_of(rule, from));
    if (!sources.empty()) {
      HEARTH_TRY(add(rule, to, std::move(sources)));
    }
  }
  for (const TensorRule& rule : rules) {
    if (rule.is_required && !made_.contains(std::string(to).append(rule.to))) {
      return fail(ErrorCode::invalid_file, "{}: tensor {} is missing", files_.shard_name(0),
                  in_quotes(std::string(from).append(rule.from)));
    }
  }
  return {};
}

Result<void> Mapper::apply_layer(LayerKind kind, std::string_view from, std::int64_t block) {
  const AppliesTo other =
      kind == LayerKind::recurrent ? AppliesTo::full_attention_layers : AppliesTo::recurrent_layers;
  for (const auto& part : family_.layer) {
    std::vector<TensorRule> rules;
    std::ranges::copy_if(part, std::back_inserter(rules), [&](const TensorRule& rule) {
      return rule.applies_to != other && rule.only_with.value_or(experts_) == experts_;
    });
    HEARTH_TRY(apply(rules, from, format("blk.{}.", block)));
  }
  return {};
}

void Mapper::add_divisors(const std::vector<float>& divisors) {
  if (!divisors.empty()) {
    result_.tensors.push_back({.name = "rope_freqs.weight",
                               .dtype = DType::f32,
                               .shape = {static_cast<std::int64_t>(divisors.size())},
                               .make = [divisors](const formats::ByteSink& sink) {
                                 return sink(std::as_bytes(std::span(divisors)));
                               }});
  }
}

Result<void> Mapper::refuse_unused() const {
  for (const auto& [name, tensor] : by_name_) {
    if (!used_.contains(name)) {
      return fail(ErrorCode::unsupported, "{}: tensor {}: expected a name that {} models have",
                  file_of(*tensor), in_quotes(tensor->name), family_.architecture);
    }
  }
  return {};
}

FolderTensors Mapper::finish() && {
  if (n_other_parts_ > 0) {
    result_.notes.push_back(
        format("{} tensors of other parts (vision) are left out", n_other_parts_));
  }
  result_.is_mlx = n_mlx_ > 0;
  if (n_float8_ > 0) {
    result_.notes.push_back(format("{} FP8 tensors are widened to BF16", n_float8_));
  }
  return std::move(result_);
}

}  // namespace

Result<FolderTensors> read_tensors(const formats::SafetensorsModel& files, const Config& config,
                                   const Family& family, const Dimensions& dimensions,
                                   ExpertLayout experts) {
  HEARTH_ASSIGN(auto quantization, read_quantization(config));
  Mapper mapper(files, family, dimensions, experts, std::move(quantization));
  HEARTH_TRY(mapper.take_stock());
  HEARTH_ASSIGN(const auto is_tied, config.root.find_flag("tie_word_embeddings"));
  HEARTH_ASSIGN(const auto is_text_tied, config.text.find_flag("tie_word_embeddings"));
  if (is_tied.value_or(is_text_tied.value_or(false))) {
    mapper.drop("lm_head");  // some folders have the table twice
  }
  HEARTH_ASSIGN(const auto rope, read_rope_config(config, "full_attention"));
  HEARTH_ASSIGN(const auto divisors, frequency_divisors(rope, dimensions.head_dim));
  mapper.add_divisors(divisors);
  HEARTH_TRY(mapper.apply(family.ends, "", ""));
  const auto n_layers = static_cast<std::int64_t>(dimensions.layers.size());
  for (std::int64_t layer = 0; layer < n_layers; ++layer) {
    HEARTH_TRY(mapper.apply_layer(dimensions.layers[static_cast<std::size_t>(layer)],
                                  format("layers.{}.", layer), layer));
  }
  const bool has_draft = !family.draft.empty() && mapper.contains("mtp.fc.weight");
  if (has_draft) {
    HEARTH_TRY(mapper.apply_layer(LayerKind::attention, "mtp.layers.0.", n_layers));
    HEARTH_TRY(mapper.apply(family.draft, draft_prefix, format("blk.{}.", n_layers)));
  }
  HEARTH_TRY(mapper.refuse_unused());
  FolderTensors result = std::move(mapper).finish();
  result.n_draft_layers = has_draft ? 1 : 0;
  return result;
}

Result<FolderTensors> read_draft_tensors(const formats::SafetensorsModel& files,
                                         const Config& config, const Family& family,
                                         const Dimensions& dimensions) {
  HEARTH_ASSIGN(auto quantization, read_quantization(config));
  Mapper mapper(files, family, dimensions, ExpertLayout::split, std::move(quantization));
  mapper.expect_mlx_layout();
  HEARTH_TRY(mapper.take_stock());
  const auto block = static_cast<std::int64_t>(dimensions.layers.size());
  HEARTH_TRY(mapper.apply_layer(LayerKind::attention, "layers.0.", block));
  HEARTH_TRY(mapper.apply(family.draft, "", format("blk.{}.", block)));
  HEARTH_TRY(mapper.refuse_unused());
  FolderTensors result = std::move(mapper).finish();
  result.n_draft_layers = 1;
  return result;
}

}  // namespace hearth::model
