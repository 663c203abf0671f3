#include "model/synth/synth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fail.h"
#include "formats/gguf/metadata.h"
#include "formats/gguf/writer.h"
#include "model/synth/random_blocks.h"
#include "model/synth/synth_tensor.h"
#include "model/synth/vocabulary.h"
#include "quant/registry.h"

namespace hearth::model {
namespace {

using formats::ByteSink;
using formats::Metadata;
using formats::TensorToWrite;

constexpr std::size_t piece_bytes = 1 << 20;  // made and written while it is in the cache

SynthArchitecture architecture_of(const ModelShape& shape) {
  return shape.hybrid ? qwen_hybrid_synth() : llama_synth();
}

Metadata make_metadata(const ModelShape& shape, const Mixture& mixture, std::uint64_t seed) {
  Metadata metadata;
  architecture_of(shape).set_keys(metadata, shape);
  metadata.set("general.type", std::string_view("model"));
  metadata.set("general.name",
               format("{} {} of random weights, seed {}", shape.name, mixture.name, seed));
  metadata.set("general.file_type", mixture.file_type);
  set_synthetic_vocabulary(metadata, shape.params.vocab);
  return metadata;
}

DType type_of(const SynthTensor& tensor, const ModelShape& shape, const Mixture& mixture) {
  if (tensor.fill != SynthFill::random) {
    return DType::f32;
  }
  if (tensor.layer) {
    return mixture.layer_type(tensor.role, *tensor.layer, shape.params.n_layers);
  }
  return shape.is_tied || tensor.role == "output" ? mixture.head : mixture.base;
}

/// One call of write_synthetic_model, while its tensors are written.
struct Writing {
  std::uint64_t seed = 0;
  const SynthProgress& progress;
  SynthReport report{};
  std::int64_t done_bytes = 0;
  std::map<DType, RandomBlocks> makers{};
  std::vector<std::byte> piece{};  // reused

  Result<void> hand_over(Bytes bytes, const ByteSink& sink) {
    HEARTH_TRY(sink(bytes));
    done_bytes += static_cast<std::int64_t>(bytes.size());
    if (!progress(done_bytes, report.weight_bytes)) {
      return fail(ErrorCode::cancelled, "stopped after {} of {} bytes", done_bytes,
                  report.weight_bytes);
    }
    return {};
  }
};

Result<void> write_equal(Writing& writing, const Shape& shape, float value, const ByteSink& sink) {
  const std::vector<float> values(static_cast<std::size_t>(shape.elements()), value);
  return writing.hand_over(std::as_bytes(std::span(values)), sink);
}

/// `number` tells the tensors of a file apart.
Result<void> write_random(Writing& writing, std::uint64_t number, DType dtype, const Shape& shape,
                          const ByteSink& sink) {
  const RandomBlocks& maker = writing.makers.try_emplace(dtype, dtype).first->second;
  const float deviation = 1 / std::sqrt(static_cast<float>(shape.back()));
  const auto block_bytes = static_cast<std::size_t>(quant::info(dtype).block_bytes);
  const std::size_t whole_piece = piece_bytes / block_bytes * block_bytes;
  std::uint64_t key = mix_bits(mix_bits(writing.seed) + number);
  auto left = static_cast<std::size_t>(*quant::tensor_bytes(dtype, shape));
  for (; left > 0; left -= writing.piece.size()) {
    writing.piece.resize(std::min(left, whole_piece));
    maker.fill(key++, deviation, writing.piece);
    HEARTH_TRY(writing.hand_over(writing.piece, sink));
  }
  return {};
}

/// The tensor to write as number `number`; `writing` must outlive it.
TensorToWrite tensor_to_make(Writing& writing, std::uint64_t number, const SynthTensor& tensor,
                             DType dtype) {
  writing.report.n_weights += tensor.shape.elements();
  writing.report.weight_bytes += *quant::tensor_bytes(dtype, tensor.shape);
  return {.name = tensor.name,
          .dtype = dtype,
          .shape = tensor.shape,
          .produce = [&writing, number, dtype, shape = tensor.shape,
                      fill = tensor.fill](const ByteSink& sink) {
            switch (fill) {
              case SynthFill::ones:
                return write_equal(writing, shape, 1.0f, sink);
              case SynthFill::slow_decay:
                return write_equal(writing, shape, -0.1f, sink);
              case SynthFill::random:
              case SynthFill::random_f32:
                break;
            }
            return write_random(writing, number, dtype, shape, sink);
          }};
}

}  // namespace

Result<SynthReport> write_synthetic_model(const std::filesystem::path& path,
                                          const ModelShape& shape, const Mixture& mixture,
                                          std::uint64_t seed, const SynthProgress& progress) {
  Writing writing{.seed = seed, .progress = progress};
  std::vector<TensorToWrite> tensors;
  for (const SynthTensor& tensor : architecture_of(shape).tensors(shape)) {
    tensors.push_back(
        tensor_to_make(writing, tensors.size(), tensor, type_of(tensor, shape, mixture)));
  }
  HEARTH_TRY(formats::write_gguf(path, make_metadata(shape, mixture, seed), tensors));
  return writing.report;
}

}  // namespace hearth::model
