#pragma once
/// The steps around the vocabulary of a tokenizer.json: normalizer, pre-tokenizer, post-processor.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/huggingface/json_object.h"

namespace hearth::model {

/// Above any vocabulary that a tokenizer may have.
inline constexpr std::int64_t max_token_id = std::int64_t{1} << 20;

/// How text is prepared for the merges.
struct Pipeline {
  bool is_byte_level = false;  // else: spaces as U+2581, with byte fallback
  std::string pre;             // the name of the pre-tokenizer, where byte-level
  bool normalizes_nfc = false;
  bool adds_space_prefix = false;
};

/// Errors: unsupported for a step, or a pattern, that nothing here implements; it is printed.
Result<Pipeline> read_pipeline(const JsonObject& file, bool ignore_merges);

/// The ids that the post-processor puts before and after a text; negative: none.
struct Frame {
  std::int64_t begin = -1;
  std::int64_t end = -1;
};

/// Errors: unsupported for more than one token on a side; invalid_file.
Result<Frame> read_frame(const JsonObject& file);

}  // namespace hearth::model
