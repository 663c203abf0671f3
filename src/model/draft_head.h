#pragma once

#include "base/result.h"
#include "model/checkpoint.h"

namespace hearth::model {

/// Whether a checkpoint is a multi-token-prediction head without the trunk that it belongs to: a
/// GGUF file with that block alone ("mtp-*.gguf"), or a folder that mlx-vlm split off.
bool is_draft_head(const Checkpoint& checkpoint);

/// `trunk` with the head as its prediction block. Of the head's file nothing else is taken: tables
/// and norms of the trunk that it repeats are left out, with a note.
/// Errors: invalid_argument for a head of another architecture or of a trunk of another depth, and
/// for a trunk that has a head.
Result<Checkpoint> join_draft_head(Checkpoint trunk, Checkpoint head);

}  // namespace hearth::model
