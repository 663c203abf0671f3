/// GGUF files of the Qwen family with keys and tensors that other converters write.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/registry.h"
#include "tests/model/huggingface/describe_checkpoint.h"
#include "tests/model/model_file.h"

namespace hearth::model {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ----- heads of keys and values, layer by layer

/// The golden model with `attention.head_count_kv` as a list.
ModelFile with_kv_heads(const std::string& name, const std::vector<std::int32_t>& heads) {
  ModelFile file(name);
  const std::string prefix = name.substr(0, name.find('-'));
  file.metadata.set_array<std::int32_t>(prefix + ".attention.head_count_kv", heads);
  return file;
}

TEST(ThirdParty, HeadsOfKeysMayBeListedWithNoneInRecurrentLayers) {
  const auto expected = ModelFile("qwen35").open();
  ASSERT_TRUE(expected.has_value());
  const auto n = static_cast<std::int32_t>((*expected)->params().n_kv_heads);
  for (const auto& heads : {std::vector{0, 0, 0, n}, std::vector{n, n, n, n}}) {
    const auto model = with_kv_heads("qwen35", heads).open();
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ((*model)->params(), (*expected)->params());
    EXPECT_EQ((*model)->kv_layers(), (*expected)->kv_layers());
  }
}

TEST(ThirdParty, HeadsOfKeysMayLeaveOutThePredictionBlock) {
  const auto expected = ModelFile("qwen35moe").open();
  ASSERT_TRUE(expected.has_value());
  const auto n = static_cast<std::int32_t>((*expected)->params().n_kv_heads);
  for (const auto& heads : {std::vector{0, 0, 0, n}, std::vector{0, 0, 0, n, n}}) {
    const auto model = with_kv_heads("qwen35moe", heads).open();
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ((*model)->kv_layers(), (*expected)->kv_layers());
  }
}

TEST(ThirdParty, ListedHeadsOfKeysThatContradictTheRestAreRefused) {
  const auto refuse = [](const std::string& name, const std::vector<std::int32_t>& heads,
                         ErrorCode code, const std::vector<std::string>& words) {
    SCOPED_TRACE(testing::PrintToString(heads));
    with_kv_heads(name, heads).expect_refused(code, words);
  };
  refuse("qwen35", {0, 0, 1}, ErrorCode::invalid_file, {"head_count_kv has 3 entries", "4 layers"});
  refuse("qwen35", {}, ErrorCode::invalid_file, {"head_count_kv has 0 entries", "4 layers"});
  refuse("qwen35", {0, 0, 0, 0}, ErrorCode::invalid_file, {"head_count_kv has 4 entries, all 0"});
  refuse("qwen35", {0, 0, 1, 0}, ErrorCode::invalid_file,
         {"qwen35.attention.head_count_kv[3] is 0, expected 1 for a layer of attention"});
  refuse("qwen35", {0, 0, -1, 1}, ErrorCode::invalid_file,
         {"head_count_kv[2] is -1, expected 0 to"});
  refuse("qwen35", {0, 0, 0, 1 << 20}, ErrorCode::invalid_file, {"head_count_kv[3] is 1048576"});
  refuse("qwen35", {0, 0, 1, 2}, ErrorCode::unsupported,
         {"head_count_kv[2] is 1, expected 2 as in another layer"});
  refuse("qwen35moe", {0, 0, 0, 1, 0}, ErrorCode::invalid_file,
         {"head_count_kv[4] is 0, expected 1"});
}

TEST(ThirdParty, WithoutRecurrentLayersEachLayerHasHeadsOfKeys) {
  const auto expected = ModelFile("qwen3").open();
  ASSERT_TRUE(expected.has_value());
  const auto n = static_cast<std::int32_t>((*expected)->params().n_kv_heads);
  const auto n_layers = static_cast<std::size_t>((*expected)->params().n_layers);
  std::vector<std::int32_t> heads(n_layers, n);
  const auto model = with_kv_heads("qwen3", heads).open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->params(), (*expected)->params());
  heads.back() = 0;
  with_kv_heads("qwen3", heads)
      .expect_refused(ErrorCode::invalid_file, {"head_count_kv[", "is 0, expected 1 to"});
}

TEST(ThirdParty, SectionsOfTheRotationMayHaveAnotherName) {
  ModelFile file("qwen35");
  file.rename_key("qwen35.rope.dimension_sections", "qwen35.mrope_sections");
  const auto model = file.open();
  EXPECT_TRUE(model.has_value()) << model.error().message;
  file.metadata.set_array<std::int32_t>("qwen35.mrope_sections", std::array{2, 1, 7});
  file.expect_refused(ErrorCode::invalid_file, {"qwen35.mrope_sections has 3 entries"});
}

TEST(ThirdParty, ListedHeadsOfKeysSayWhichLayersAreRecurrentWhereNothingElseDoes) {
  ModelFile file = with_kv_heads("qwen35-heads", {2, 0, 0, 2});
  file.rename_key("qwen35.attention.recurrent_layers", "unknown");
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ((*model)->kv_layers().size(), 1u);
  EXPECT_EQ((*model)->state_layers().size(), 2u);
}

// ----- vision

TEST(ThirdParty, VisionTensorsAreLeftOutWithOneNotice) {
  ModelFile file("qwen35");
  const std::array<float, 4> data{};
  const TensorView view{DType::f32, Shape{4}, std::as_bytes(std::span(data))};
  for (const char* name : {"v.patch_embd.weight", "v.blk.0.attn_q.weight", "mm.0.weight"}) {
    file.tensors.push_back(formats::tensor_to_write(name, view));
  }
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_THAT((*model)->warnings(), ElementsAre("3 vision tensors (v.*, mm.*) are left out"));
}

// ----- the MTP head under its names of training

/// Names of training below "mtp.", with the canonical ones below the block.
struct TrainingName {
  std::string_view canonical;
  std::string_view training;
};
constexpr std::array training_names{
    TrainingName{"nextn.eh_proj.weight", "fc.weight"},
    TrainingName{"nextn.enorm.weight", "pre_fc_norm_embedding.weight"},
    TrainingName{"nextn.hnorm.weight", "pre_fc_norm_hidden.weight"},
    TrainingName{"nextn.shared_head_norm.weight", "norm.weight"},
    TrainingName{"attn_norm.weight", "layers.0.input_layernorm.weight"},
    TrainingName{"post_attention_norm.weight", "layers.0.post_attention_layernorm.weight"},
    TrainingName{"attn_q.weight", "layers.0.self_attn.q_proj.weight"},
    TrainingName{"attn_k.weight", "layers.0.self_attn.k_proj.weight"},
    TrainingName{"attn_v.weight", "layers.0.self_attn.v_proj.weight"},
    TrainingName{"attn_output.weight", "layers.0.self_attn.o_proj.weight"},
    TrainingName{"attn_q_norm.weight", "layers.0.self_attn.q_norm.weight"},
    TrainingName{"attn_k_norm.weight", "layers.0.self_attn.k_norm.weight"},
    TrainingName{"ffn_gate.weight", "layers.0.mlp.gate_proj.weight"},
    TrainingName{"ffn_up.weight", "layers.0.mlp.up_proj.weight"},
    TrainingName{"ffn_down.weight", "layers.0.mlp.down_proj.weight"},
    TrainingName{"ffn_gate_inp.weight", "layers.0.mlp.gate.weight"},
    TrainingName{"ffn_gate_exps.weight", "layers.0.mlp.experts.*.gate_proj.weight"},
    TrainingName{"ffn_up_exps.weight", "layers.0.mlp.experts.*.up_proj.weight"},
    TrainingName{"ffn_down_exps.weight", "layers.0.mlp.experts.*.down_proj.weight"},
    TrainingName{"ffn_gate_shexp.weight", "layers.0.mlp.shared_expert.gate_proj.weight"},
    TrainingName{"ffn_up_shexp.weight", "layers.0.mlp.shared_expert.up_proj.weight"},
    TrainingName{"ffn_down_shexp.weight", "layers.0.mlp.shared_expert.down_proj.weight"},
    TrainingName{"ffn_gate_inp_shexp.weight", "layers.0.mlp.shared_expert_gate.weight"},
};

/// A golden model whose head is as other converters leave it. Norms of the head are a half, in
/// training half below one, so that both are exact.
struct TrainingHead {
  TrainingHead(const std::string& name, std::string_view block_prefix)
      : canonical(name), training(name), block(block_prefix) {
    for (auto* file : {&canonical, &training}) {
      for (auto& tensor : file->tensors) {
        if (tensor.name.starts_with(block) && tensor.name.ends_with("norm.weight")) {
          const float value = file == &canonical ? 0.5f : -0.5f;
          auto& data = norms.emplace_back(
              std::vector<float>(static_cast<std::size_t>(tensor.shape.elements()), value));
          tensor = formats::tensor_to_write(
              tensor.name, {DType::f32, tensor.shape, std::as_bytes(std::span(data))});
        }
      }
    }
    rename();
    const std::string architecture = name.substr(0, name.find('-'));
    const auto n_blocks = *training.metadata.get<std::uint32_t>(architecture + ".block_count");
    training.metadata.set(architecture + ".block_count", n_blocks - 1);
    training.metadata.set(architecture + ".nextn_predict_layers", std::uint32_t{0});
  }

  void rename() {
    std::vector<formats::TensorToWrite> renamed;
    for (const auto& tensor : training.tensors) {
      if (!tensor.name.starts_with(block)) {
        renamed.push_back(tensor);
        continue;
      }
      const auto found =
          std::ranges::find(training_names, std::string_view(tensor.name).substr(block.size()),
                            &TrainingName::canonical);
      ASSERT_NE(found, training_names.end()) << tensor.name;
      add("mtp." + std::string(found->training), tensor, renamed);
    }
    training.tensors = std::move(renamed);
  }

  /// A tensor, or, where the name has a star, each of its outermost parts.
  static void add(const std::string& name, const formats::TensorToWrite& tensor,
                  std::vector<formats::TensorToWrite>& to) {
    const std::size_t star = name.find('*');
    if (star == std::string::npos) {
      to.push_back(tensor);
      to.back().name = name;
      return;
    }
    const Shape shape{tensor.shape[1], tensor.shape[2]};
    const auto n_bytes = static_cast<std::size_t>(*quant::tensor_bytes(tensor.dtype, shape));
    for (std::int64_t i = 0; i < tensor.shape[0]; ++i) {
      const auto begin = static_cast<std::size_t>(i) * n_bytes;
      const auto produce = tensor.produce;
      to.push_back({.name = name.substr(0, star) + std::to_string(i) + name.substr(star + 1),
                    .dtype = tensor.dtype,
                    .shape = shape,
                    .produce = [produce, begin, n_bytes](const formats::ByteSink& sink) {
                      return produce([&](Bytes all) { return sink(all.subspan(begin, n_bytes)); });
                    }});
    }
  }

  std::deque<std::vector<float>> norms;
  ModelFile canonical, training;
  std::string block;
};

void expect_same_model(const ModelFile& canonical, const ModelFile& training) {
  const auto expected = canonical.open();
  ASSERT_TRUE(expected.has_value()) << expected.error().message;
  const auto model = training.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_THAT((*model)->warnings(), IsEmpty());
  EXPECT_NE((*model)->mtp(), nullptr);
  EXPECT_THAT(describe((*model)->checkpoint()),
              ElementsAreArray(describe((*expected)->checkpoint())));
}

TEST(ThirdParty, AHeadUnderItsNamesOfTrainingIsThePredictionBlock) {
  const TrainingHead dense("qwen35-heads", "blk.3.");
  expect_same_model(dense.canonical, dense.training);
  const TrainingHead experts("qwen35moe", "blk.4.");
  expect_same_model(experts.canonical, experts.training);
}

TEST(ThirdParty, CanonicalNamesBelowTheLayerOfAHeadCountAsTheyAre) {
  TrainingHead head("qwen35-heads", "blk.3.");
  for (const auto& [canonical, training] : training_names) {
    if (!training.starts_with("layers.0.") || canonical.find("_exps") != std::string_view::npos) {
      continue;
    }
    const std::string in_block = head.block + std::string(canonical);
    if (head.canonical.has(in_block)) {
      auto& tensor = head.training.tensor("mtp." + std::string(training));
      tensor = head.canonical.tensor(in_block);
      tensor.name = "mtp.layers.0." + std::string(canonical);
    }
  }
  expect_same_model(head.canonical, head.training);
}

TEST(ThirdParty, AHeadThatIsNotWholeIsLeftOutWithWhatIsMissing) {
  for (const std::string missing :
       {"fc.weight", "layers.0.self_attn.q_norm.weight", "layers.0.mlp.experts.0.up_proj.weight",
        "layers.0.mlp.shared_expert_gate.weight"}) {
    TrainingHead head("qwen35moe", "blk.4.");
    head.training.remove("mtp." + missing);
    const auto model = head.training.open();
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ((*model)->mtp(), nullptr);
    ASSERT_EQ((*model)->warnings().size(), 1u);
    EXPECT_THAT((*model)->warnings().front(), HasSubstr("MTP head (mtp.*) are left out: expected"));
  }
}

TEST(ThirdParty, AHeadWithExpertsMissingIsRefusedByItsShape) {
  TrainingHead head("qwen35moe", "blk.4.");
  for (const std::string part : {"gate", "up", "down"}) {
    head.training.remove("mtp.layers.0.mlp.experts.7." + part + "_proj.weight");
  }
  head.training.expect_refused(ErrorCode::invalid_file, {"'blk.4.ffn_gate_exps.weight'", "[7, "});
}

TEST(ThirdParty, AHeadBesideThatOfTheFileIsLeftOut) {
  ModelFile file("qwen35-heads");
  auto second = file.tensor("blk.3.nextn.eh_proj.weight");
  second.name = "mtp.fc.weight";
  file.tensors.push_back(second);
  const auto model = file.open();
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_NE((*model)->mtp(), nullptr);
  EXPECT_THAT(
      (*model)->warnings(),
      ElementsAre("1 tensors of an MTP head (mtp.*) are left out: there are others, blk.3.*"));
}

}  // namespace
}  // namespace hearth::model
