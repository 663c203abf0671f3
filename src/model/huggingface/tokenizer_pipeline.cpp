#include "model/huggingface/tokenizer_pipeline.h"

#include <array>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/gguf/place.h"
#include "tokenizer/pre_patterns.h"
#include "tokenizer/visible_spaces.h"

namespace hearth::model {
namespace {

using nlohmann::json;
using tokenizer::visible_space;

constexpr std::size_t longest_shown = 400;

/// A step that is not handled, as the file writes it.
Failure unhandled(const JsonObject& file, std::string_view step, const json& what) {
  const std::string text = what.dump(-1, ' ', true, json::error_handler_t::replace);
  return fail(ErrorCode::unsupported, "{}: {} is not handled: {}{}", file.place(), step,
              std::string_view(text).substr(0, longest_shown),
              text.size() > longest_shown ? "..." : "");
}

/// The steps of a pipeline: those of a Sequence, or the one there is.
std::vector<json> steps_of(const JsonObject& file, const char* name, const char* list) {
  const json* step = file.find(name);
  if (step == nullptr) {
    return {};
  }
  if (step->is_object() && step->value("type", json()) == "Sequence" && step->contains(list) &&
      (*step)[list].is_array()) {
    return (*step)[list].get<std::vector<json>>();
  }
  return {*step};
}

bool is_step(const json& step, std::string_view type) {
  return step.is_object() && step.value("type", json()) == type;
}

/// Whether `step` has the entry `name` with this value.
bool has(const json& step, const char* name, const json& value) {
  return step.contains(name) && step[name] == value;
}

bool replaces_spaces(const json& step) {
  return is_step(step, "Replace") && has(step, "pattern", {{"String", " "}}) &&
         has(step, "content", visible_space);
}

Result<void> read_normalizer(const JsonObject& file, Pipeline& pipeline, bool& shows_spaces) {
  for (const json& step : steps_of(file, "normalizer", "normalizers")) {
    if (is_step(step, "NFC")) {
      pipeline.normalizes_nfc = true;
    } else if (replaces_spaces(step)) {
      shows_spaces = true;
    } else if (is_step(step, "Prepend") && has(step, "prepend", visible_space)) {
      pipeline.adds_space_prefix = true;
    } else {
      return unhandled(file, "normalizer", step);
    }
  }
  return {};
}

/// The expressions of byte-level pre-tokenizers, as the table of pre-tokenizers has them.
Result<std::vector<std::string>> read_stages(const JsonObject& file,
                                             const std::vector<json>& steps) {
  HEARTH_ASSIGN(const auto* gpt2, tokenizer::find_pre_tokenizer("gpt-2"));
  std::vector<std::string> stages;
  for (const json& step : steps) {
    const bool splits_by_regex = is_step(step, "Split") && has(step, "behavior", "Isolated") &&
                                 !has(step, "invert", true) && step.contains("pattern") &&
                                 step["pattern"].is_object() &&
                                 step["pattern"].value("Regex", json()).is_string();
    if (splits_by_regex) {
      stages.push_back(step["pattern"]["Regex"].get<std::string>());
    } else if (is_step(step, "Digits") && has(step, "individual_digits", true)) {
      stages.emplace_back(R"(\p{N})");
    } else if (is_step(step, "ByteLevel") && !has(step, "add_prefix_space", true)) {
      if (!has(step, "use_regex", false)) {
        stages.emplace_back(gpt2->stages.front());
      }
    } else {
      return unhandled(file, "pre_tokenizer", step);
    }
  }
  return stages;
}

Result<void> read_byte_level(const JsonObject& file, const std::vector<json>& steps,
                             bool ignore_merges, Pipeline& pipeline) {
  HEARTH_ASSIGN(const auto stages, read_stages(file, steps));
  const std::vector<std::string_view> views(stages.begin(), stages.end());
  const auto* known = tokenizer::find_pre_tokenizer(views, ignore_merges);
  if (known == nullptr) {
    return unhandled(file, "pre_tokenizer", *file.find("pre_tokenizer"));
  }
  pipeline.is_byte_level = true;
  pipeline.pre = known->names.front();
  return {};
}

/// Pre-tokenizers of the SentencePiece tradition write a space as U+2581 and cut nothing that
/// merges could join.
Result<void> read_visible_spaces(const JsonObject& file, const std::vector<json>& steps,
                                 bool shows_spaces, Pipeline& pipeline) {
  for (const json& step : steps) {
    if (is_step(step, "Metaspace") && has(step, "replacement", visible_space)) {
      shows_spaces = true;
      const bool never =
          has(step, "prepend_scheme", "never") || has(step, "add_prefix_space", false);
      pipeline.adds_space_prefix = !never;
    } else if (!(is_step(step, "Split") && has(step, "pattern", {{"String", " "}}) &&
                 has(step, "behavior", "MergedWithPrevious"))) {
      return unhandled(file, "pre_tokenizer", step);
    }
  }
  if (!shows_spaces) {
    return unhandled(file, "a pre_tokenizer that leaves spaces as they are", json(steps));
  }
  return {};
}

}  // namespace

Result<Pipeline> read_pipeline(const JsonObject& file, bool ignore_merges) {
  Pipeline pipeline;
  bool shows_spaces = false;
  HEARTH_TRY(read_normalizer(file, pipeline, shows_spaces));
  const auto steps = steps_of(file, "pre_tokenizer", "pretokenizers");
  const bool is_byte_level =
      std::ranges::any_of(steps, [](const json& step) { return is_step(step, "ByteLevel"); });
  HEARTH_TRY(is_byte_level ? read_byte_level(file, steps, ignore_merges, pipeline)
                           : read_visible_spaces(file, steps, shows_spaces, pipeline));
  return pipeline;
}

namespace {

/// The id of a special token of a template, by the name that the template has for it.
Result<std::int64_t> id_of(const JsonObject& processor, const json& item) {
  const json name =
      item["SpecialToken"].is_object() ? item["SpecialToken"].value("id", json()) : json();
  HEARTH_ASSIGN(const auto tokens, processor.object("special_tokens"));
  const json* token = name.is_string() ? tokens.find(name.get_ref<const std::string&>()) : nullptr;
  const json ids = token != nullptr && token->is_object() ? token->value("ids", json()) : json();
  if (!ids.is_array() || ids.size() != 1 || !ids[0].is_number_unsigned() || ids[0] > max_token_id) {
    return fail(ErrorCode::unsupported, "{}: expected templates of single special tokens, found {}",
                processor.place(), describe(ids));
  }
  return ids[0].get<std::int64_t>();
}

Result<void> read_template(const JsonObject& processor, Frame& frame) {
  HEARTH_ASSIGN(const auto* items, processor.find_list("single"));
  bool after_text = false;
  for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
    const json& item = (*items)[i];
    if (!item.is_object() || !item.contains("SpecialToken")) {
      after_text = true;
      continue;
    }
    std::int64_t& side = after_text ? frame.end : frame.begin;
    if (side >= 0) {
      return fail(ErrorCode::unsupported,
                  "{}: expected one special token before and one after a text, found more",
                  processor.place());
    }
    HEARTH_ASSIGN(side, id_of(processor, item));
  }
  return {};
}

}  // namespace

Result<Frame> read_frame(const JsonObject& file) {
  Frame frame;
  for (const json& step : steps_of(file, "post_processor", "processors")) {
    if (is_step(step, "TemplateProcessing")) {
      HEARTH_ASSIGN(const auto processor, JsonObject::of(step, file.place() + ": post_processor"));
      HEARTH_TRY(read_template(processor, frame));
    } else if (!is_step(step, "ByteLevel")) {  // which is about offsets only
      return unhandled(file, "post_processor", step);
    }
  }
  return frame;
}

}  // namespace hearth::model
