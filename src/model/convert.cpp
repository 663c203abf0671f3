#include "model/convert.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/ascii_case.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/half.h"
#include "formats/gguf/place.h"
#include "formats/gguf/writer.h"
#include "model/always_f32.h"
#include "quant/affine.h"
#include "quant/registry.h"
#include "quant/types/q8_0.h"

namespace hearth::model {
namespace {

using formats::ByteSink;

constexpr std::int64_t piece_weights = 1 << 18;  // a multiple of every block

/// A type that weights can be stored in. Encoding to floats rounds to nearest even.
struct TargetType {
  std::string_view name;
  DType dtype;
  std::uint32_t file_type;  // general.file_type
  float largest;            // magnitude that does not become infinite
  void (*encode)(std::span<const float> weights, std::byte* out);
};

void encode_q8_0(std::span<const float> weights, std::byte* out) {
  auto* block = as_array<quant::Q8_0::Block>(out);
  for (; !weights.empty(); weights = weights.subspan(32)) {
    quant::Q8_0::encode(weights.first<32>(), *block++);
  }
}

constexpr std::array targets{
    TargetType{"bf16", DType::bf16, 32, 0x1.fep127f,
               [](std::span<const float> weights, std::byte* out) {
                 std::ranges::transform(weights, as_array<BFloat16>(out), to_bfloat16);
               }},
    TargetType{"f16", DType::f16, 1, 65504.0f,
               [](std::span<const float> weights, std::byte* out) {
                 std::ranges::transform(weights, as_array<Half>(out), to_half);
               }},
    TargetType{"f32", DType::f32, 0, std::numeric_limits<float>::max(),
               [](std::span<const float> weights, std::byte* out) {
                 std::ranges::copy(std::as_bytes(weights), out);
               }},
    TargetType{"q8_0", quant::Q8_0::info.dtype, 7, 127 * 65504.0f, encode_q8_0},
};

const TargetType* target_of(DType dtype) {
  const auto* found = std::ranges::find(targets, dtype, &TargetType::dtype);
  return found == targets.end() ? nullptr : found;
}

/// MLX's groups as blocks of the GGUF type that can have the same weights.
class Repacker {
 public:
  explicit Repacker(const CheckpointTensor& tensor) : tensor_(tensor) {}

  /// False when they would not be the same. Hands the blocks out until the next call.
  bool operator()(Bytes blocks) {
    blocks_.resize(static_cast<std::size_t>(
        quant::affine_file_bytes(tensor_.dtype, static_cast<std::int64_t>(blocks.size()))));
    return quant::repack_for_file(tensor_.dtype, blocks, blocks_);
  }
  [[nodiscard]] Bytes blocks() const { return blocks_; }

 private:
  const CheckpointTensor& tensor_;
  std::vector<std::byte> blocks_;
};

/// The GGUF type that has the weights of one that files do not have, else F16.
Result<DType> type_for_file(const CheckpointTensor& tensor) {
  const auto target = quant::affine_file_type(tensor.dtype);
  bool is_exact = target.has_value();
  if (is_exact) {
    Repacker repack(tensor);
    HEARTH_TRY(tensor.produce([&](Bytes blocks) -> Result<void> {
      is_exact = is_exact && repack(blocks);
      return {};
    }));
  }
  return is_exact ? *target : DType::f16;
}

Result<DType> target_type(const CheckpointTensor& tensor, std::optional<DType> wanted) {
  if (!quant::is_float_decodable(tensor.dtype)) {
    return tensor.dtype;  // plain integers
  }
  if (is_always_f32(tensor.name, static_cast<std::size_t>(tensor.shape.rank()))) {
    return DType::f32;
  }
  const DType dtype = wanted.value_or(tensor.dtype);
  if (!quant::info(dtype).is_in_files) {
    return type_for_file(tensor);
  }
  // Some rows are no whole blocks.
  return quant::tensor_bytes(dtype, tensor.shape) ? dtype : DType::f16;
}

/// Decodes whole blocks and encodes them anew, a piece at a time.
class Recoder {
 public:
  Recoder(const CheckpointTensor& tensor, std::string_view file, const TargetType& target)
      : tensor_(tensor), file_(file), target_(target) {}

  Result<void> operator()(Bytes blocks, const ByteSink& sink) {
    const auto piece_bytes =
        static_cast<std::size_t>(quant::row_bytes(tensor_.dtype, piece_weights));
    while (!blocks.empty()) {
      const Bytes piece = blocks.first(std::min(blocks.size(), piece_bytes));
      HEARTH_TRY(recode(piece, sink));
      blocks = blocks.subspan(piece.size());
    }
    return {};
  }

 private:
  Result<void> recode(Bytes piece, const ByteSink& sink) {
    const auto& type = quant::info(tensor_.dtype);
    weights_.resize(piece.size() / static_cast<std::size_t>(type.block_bytes) *
                    static_cast<std::size_t>(type.block_weights));
    quant::decode(tensor_.dtype, piece, weights_);
    const auto bad = std::ranges::find_if_not(
        weights_, [this](float weight) { return std::abs(weight) <= target_.largest; });
    if (bad != weights_.end()) {
      return fail(ErrorCode::invalid_file,
                  "{}: tensor {}: expected weights that {} can hold, "
                  "found {}",
                  file_, formats::in_quotes(tensor_.name), target_.name, *bad);
    }
    encoded_.resize(static_cast<std::size_t>(
        quant::row_bytes(target_.dtype, static_cast<std::int64_t>(weights_.size()))));
    target_.encode(weights_, encoded_.data());
    return sink(encoded_);
  }

  const CheckpointTensor& tensor_;
  std::string_view file_;
  const TargetType& target_;
  std::vector<float> weights_;
  std::vector<std::byte> encoded_;
};

/// One call of convert_to_gguf.
struct Conversion {
  const Checkpoint& checkpoint;
  const ConvertProgress& progress;
  ConvertReport report{};
  std::int64_t done_bytes = 0;

  Result<void> hand_over(Bytes bytes, const ByteSink& sink) {
    HEARTH_TRY(sink(bytes));
    done_bytes += static_cast<std::int64_t>(bytes.size());
    if (!progress(done_bytes, report.tensor_bytes)) {
      return fail(ErrorCode::cancelled, "stopped after {} of {} bytes", done_bytes,
                  report.tensor_bytes);
    }
    return {};
  }
};

Result<void> write_tensor(Conversion& conversion, const CheckpointTensor& tensor, DType dtype,
                          const ByteSink& sink) {
  const ByteSink counted = [&](Bytes bytes) { return conversion.hand_over(bytes, sink); };
  if (dtype == tensor.dtype) {
    return tensor.produce(counted);
  }
  if (quant::affine_file_type(tensor.dtype) == dtype) {
    Repacker repack(tensor);
    return tensor.produce([&](Bytes blocks) -> Result<void> {
      if (!repack(blocks)) {  // which type_for_file() has tried with all of them
        return fail(ErrorCode::invalid_file, "{}: tensor {}: expected data that stays as it is",
                    conversion.checkpoint.shard_name(tensor.shard),
                    formats::in_quotes(tensor.name));
      }
      return counted(repack.blocks());
    });
  }
  Recoder recoder(tensor, conversion.checkpoint.shard_name(tensor.shard), *target_of(dtype));
  return tensor.produce([&](Bytes blocks) { return recoder(blocks, counted); });
}

/// The number that stands for the type of most weights; nullopt when GGUF has none for it.
std::optional<std::uint32_t> file_type_of(std::span<const formats::TensorToWrite> tensors) {
  std::map<DType, std::int64_t> weights;
  for (const auto& tensor : tensors) {
    weights[tensor.dtype] += tensor.shape.elements();
  }
  const auto most = std::ranges::max_element(weights, {}, [](const auto& of) { return of.second; });
  const TargetType* target = most == weights.end() ? nullptr : target_of(most->first);
  return target == nullptr ? std::nullopt : std::optional(target->file_type);
}

}  // namespace

std::string names_of_target_types() {
  std::string names;
  for (const TargetType& target : targets) {
    names += format("{}{}", names.empty() ? "" : ", ", target.name);
  }
  return names;
}

Result<DType> find_target_type(std::string_view name) {
  const auto* found = std::ranges::find_if(
      targets, [name](std::string_view known) { return equal_without_case(known, name); },
      &TargetType::name);
  if (found == targets.end()) {
    return fail(ErrorCode::invalid_argument, "type {}: expected one of {}",
                formats::in_quotes(name), names_of_target_types());
  }
  return found->dtype;
}

Result<ConvertReport> convert_to_gguf(const Checkpoint& checkpoint,
                                      const std::filesystem::path& path, std::optional<DType> type,
                                      const ConvertProgress& progress) {
  Conversion conversion{.checkpoint = checkpoint, .progress = progress};
  std::vector<formats::TensorToWrite> tensors;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    HEARTH_ASSIGN(const DType dtype, target_type(tensor, type));
    ++conversion.report.n_tensors;
    conversion.report.n_weights += tensor.shape.elements();
    conversion.report.tensor_bytes += *quant::tensor_bytes(dtype, tensor.shape);
    tensors.push_back({.name = tensor.name,
                       .dtype = dtype,
                       .shape = tensor.shape,
                       .produce = [&conversion, &tensor, dtype](const ByteSink& sink) {
                         return write_tensor(conversion, tensor, dtype, sink);
                       }});
  }
  formats::Metadata metadata = checkpoint.metadata().clone();
  if (const auto file_type = file_type_of(tensors)) {
    metadata.set("general.file_type", *file_type);
  }
  HEARTH_TRY(formats::write_gguf(path, metadata, tensors));
  return conversion.report;
}

}  // namespace hearth::model
