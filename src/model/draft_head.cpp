#include "model/draft_head.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/fail.h"

namespace hearth::model {
namespace {

/// What the metadata says of blocks; absent or odd numbers count as 0.
struct Blocks {
  std::string architecture;
  std::int64_t n_trunk = 0;
  std::int64_t n_prediction = 0;
};

std::int64_t count_of(const formats::Metadata& metadata, const std::string& key) {
  const auto count = metadata.find<std::uint32_t>(key);
  return count && *count ? std::int64_t{**count} : 0;
}

Blocks blocks_of(const Checkpoint& checkpoint) {
  const auto& metadata = checkpoint.metadata();
  const auto name = metadata.find<std::string_view>("general.architecture");
  Blocks blocks{.architecture = std::string(name && *name ? **name : std::string_view())};
  blocks.n_prediction = count_of(metadata, blocks.architecture + ".nextn_predict_layers");
  blocks.n_trunk = count_of(metadata, blocks.architecture + ".block_count") - blocks.n_prediction;
  return blocks;
}

std::string prefix_of_block(std::int64_t block) {
  return format("blk.{}.", block);
}

/// What keeps alive the data of both.
struct BothStorages {
  std::shared_ptr<const void> trunk;
  std::shared_ptr<const void> head;
};

}  // namespace

bool is_draft_head(const Checkpoint& checkpoint) {
  const Blocks blocks = blocks_of(checkpoint);
  return blocks.n_prediction > 0 && blocks.n_trunk > 0 &&
         checkpoint.find(prefix_of_block(blocks.n_trunk) + "nextn.eh_proj.weight") != nullptr &&
         checkpoint.find("blk.0.attn_norm.weight") == nullptr;
}

Result<Checkpoint> join_draft_head(Checkpoint trunk, Checkpoint head) {
  const Blocks of_trunk = blocks_of(trunk);
  const Blocks of_head = blocks_of(head);
  if (of_trunk.architecture != of_head.architecture || of_trunk.n_trunk != of_head.n_trunk) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected an MTP head of {} with {} layers, found one of {} with {}",
                head.name(), of_trunk.architecture, of_trunk.n_trunk, of_head.architecture,
                of_head.n_trunk);
  }
  if (of_trunk.n_prediction > 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a model without an MTP head for that of {}, found one with its own",
                trunk.name(), head.name());
  }
  Checkpoint::Parts joined = std::move(trunk).take_apart();
  Checkpoint::Parts taken = std::move(head).take_apart();
  joined.metadata = joined.metadata.clone();
  joined.metadata.set(of_trunk.architecture + ".block_count",
                      static_cast<std::uint32_t>(of_trunk.n_trunk + 1));
  joined.metadata.set(of_trunk.architecture + ".nextn_predict_layers", std::uint32_t{1});
  const std::string block = prefix_of_block(of_head.n_trunk);
  std::size_t n_left_out = 0;
  for (CheckpointTensor& tensor : taken.tensors) {
    if (tensor.name.starts_with(block)) {
      tensor.shard += static_cast<std::uint32_t>(joined.shard_names.size());
      joined.tensors.push_back(std::move(tensor));
    } else {
      ++n_left_out;
    }
  }
  if (n_left_out > 0) {
    joined.notes.push_back(
        format("{}: {} tensors beside the MTP head are left out", taken.name, n_left_out));
  }
  joined.notes.insert(joined.notes.end(), taken.notes.begin(), taken.notes.end());
  joined.shard_names.insert(joined.shard_names.end(), taken.shard_names.begin(),
                            taken.shard_names.end());
  joined.storage = std::make_shared<const BothStorages>(
      BothStorages{std::move(joined.storage), std::move(taken.storage)});
  return Checkpoint(std::move(joined));
}

}  // namespace hearth::model
