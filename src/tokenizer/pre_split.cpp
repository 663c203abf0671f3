#include "tokenizer/pre_split.h"

#include <utility>

namespace hearth::tokenizer {

Result<PreSplit> PreSplit::create(const PreTokenizer& pre_tokenizer) {
  PreSplit split;
  for (const std::string_view expression : pre_tokenizer.stages) {
    if (!expression.empty()) {
      HEARTH_ASSIGN(Pattern stage, Pattern::create(expression));
      split.stages_.push_back(std::move(stage));
    }
  }
  return split;
}

Result<std::vector<std::uint32_t>> PreSplit::split(std::string_view text) const {
  std::vector<std::uint32_t> lengths{static_cast<std::uint32_t>(text.size())};
  for (const Pattern& stage : stages_) {
    HEARTH_ASSIGN(lengths, stage.cut(text, lengths));
  }
  return lengths;
}

}  // namespace hearth::tokenizer
