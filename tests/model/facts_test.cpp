/// Facts of a published size, from shapes alone. Source of the expected numbers: parameter totals
/// published with the checkpoints, and the sums of the shapes in their configurations.

#include "model/facts.h"

#include <algorithm>
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "model/layers.h"

namespace hearth::model {
namespace {

/// Qwen3.5-35B-A3B with its prediction block: 40 layers, embedding 2048, 256 experts of 512.
class Qwen35B {
 public:
  Qwen35B() {
    metadata.set("general.architecture", std::string_view("qwen35moe"));
    for (const auto& [key, value] :
         {std::pair("block_count", 41u), std::pair("nextn_predict_layers", 1u),
          std::pair("expert_count", 256u), std::pair("expert_used_count", 8u),
          std::pair("ssm.inner_size", 4096u), std::pair("ssm.state_size", 128u)}) {
      metadata.set(std::string("qwen35moe.") + key, std::uint32_t{value});
    }
    add("token_embd.weight", Shape{vocab, embed});
    for (std::int64_t i = 0; i < 40; ++i) {
      i % 4 == 3 ? add_attention(i) : add_recurrent(i);
      add_experts(i);
    }
    add_attention(40);
    add_experts(40);
    add("blk.40.nextn.eh_proj.weight", Shape{embed, 2 * embed});
    for (const auto* norm : {"enorm", "hnorm", "shared_head_norm"}) {
      add(std::string("blk.40.nextn.") + norm + ".weight", Shape{embed});
    }
    add("output_norm.weight", Shape{embed});
    add("output.weight", Shape{vocab, embed});
  }

  formats::Metadata metadata;
  std::vector<TensorFacts> tensors;

  static constexpr std::int64_t embed = 2048;
  static constexpr std::int64_t vocab = 248320;

 private:
  void add(std::string name, const Shape& shape) {
    names_.push_back(std::move(name));
    tensors.push_back({names_.back(), shape, 2 * shape.elements()});
  }
  void add_attention(std::int64_t i) {
    add(block_name(i, "attn_q.weight"), Shape{8192, embed});
    add(block_name(i, "attn_k.weight"), Shape{512, embed});
    add(block_name(i, "attn_v.weight"), Shape{512, embed});
    add(block_name(i, "attn_output.weight"), Shape{embed, 4096});
    add(block_name(i, "attn_q_norm.weight"), Shape{256});
    add(block_name(i, "attn_k_norm.weight"), Shape{256});
  }
  void add_recurrent(std::int64_t i) {
    add(block_name(i, "attn_qkv.weight"), Shape{8192, embed});
    add(block_name(i, "attn_gate.weight"), Shape{4096, embed});
    add(block_name(i, "ssm_alpha.weight"), Shape{32, embed});
    add(block_name(i, "ssm_beta.weight"), Shape{32, embed});
    add(block_name(i, "ssm_conv1d.weight"), Shape{8192, 4});
    add(block_name(i, "ssm_dt.bias"), Shape{32});
    add(block_name(i, "ssm_a"), Shape{32});
    add(block_name(i, "ssm_norm.weight"), Shape{128});
    add(block_name(i, "ssm_out.weight"), Shape{embed, 4096});
  }
  void add_experts(std::int64_t i) {
    add(block_name(i, "attn_norm.weight"), Shape{embed});
    add(block_name(i, "post_attention_norm.weight"), Shape{embed});
    add(block_name(i, "ffn_gate_inp.weight"), Shape{256, embed});
    add(block_name(i, "ffn_gate_exps.weight"), Shape{256, 512, embed});
    add(block_name(i, "ffn_up_exps.weight"), Shape{256, 512, embed});
    add(block_name(i, "ffn_down_exps.weight"), Shape{256, embed, 512});
    add(block_name(i, "ffn_gate_inp_shexp.weight"), Shape{embed});
    add(block_name(i, "ffn_gate_shexp.weight"), Shape{512, embed});
    add(block_name(i, "ffn_up_shexp.weight"), Shape{512, embed});
    add(block_name(i, "ffn_down_shexp.weight"), Shape{embed, 512});
  }

  std::deque<std::string> names_;
};

const Component& component(const ModelFacts& facts, std::string_view name) {
  return *std::find_if(facts.components.begin(), facts.components.end(),
                       [&](const auto& each) { return each.name == name; });
}

TEST(ModelFacts, AreThoseOfAPublishedSize) {
  const Qwen35B model;
  const auto facts = facts_of(model.metadata, model.tensors);
  EXPECT_EQ(facts.n_parameters, 34'660'610'688);
  EXPECT_EQ(facts.n_prediction_parameters, 844'640'768);
  EXPECT_NEAR(static_cast<double>(facts.n_active()), 2.946e9, 5e5);
  EXPECT_EQ(facts.kv_elements * 2, 20'480);  // bytes in f16
  EXPECT_EQ(facts.state_bytes, 65'863'680);
  ASSERT_EQ(facts.layers.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(facts.layers[i], i % 4 == 3 ? LayerKind::attention : LayerKind::recurrent);
  }
}

TEST(ModelFacts, CountWhatATokenReadsOfEachComponent) {
  const Qwen35B model;
  const auto facts = facts_of(model.metadata, model.tensors);
  EXPECT_EQ(component(facts, "embedding").n_active, 2048);
  // q, k, v, gate and both gates of the rule: 503.3 M + 251.7 M + 3.9 M
  EXPECT_EQ(component(facts, "recurrent input").n_active, 30 * (8192 + 4096 + 64) * 2048);
  EXPECT_EQ(component(facts, "convolution").n_active, 30 * 8192 * 4);
  EXPECT_EQ(component(facts, "recurrent output").n_active, 30 * 4096 * 2048);
  EXPECT_EQ(component(facts, "attention").n_active, 10 * (8192 + 1024 + 4096) * 2048);
  EXPECT_EQ(component(facts, "router").n_active, 40 * 256 * 2048);
  EXPECT_EQ(component(facts, "experts").n_active, 40 * 8 * 3 * 512 * 2048);
  EXPECT_EQ(component(facts, "experts").n_parameters, 40LL * 256 * 3 * 512 * 2048);
  EXPECT_EQ(component(facts, "shared expert").n_active, 40 * (3 * 512 + 1) * 2048);
  EXPECT_EQ(component(facts, "head").n_active, 248320 * 2048);
  EXPECT_EQ(facts.active_bytes(), 2 * (facts.n_active() + 2048));
}

TEST(ModelFacts, CountATiedTableOnceAndReadItWhole) {
  Qwen35B model;
  std::erase_if(model.tensors, [](const auto& each) { return each.name == "output.weight"; });
  const auto facts = facts_of(model.metadata, model.tensors);
  EXPECT_EQ(facts.n_parameters, 34'660'610'688 - 248320LL * 2048);
  EXPECT_NEAR(static_cast<double>(facts.n_active()), 2.946e9, 5e5);
}

TEST(ModelFacts, AreEmptyForAFileThatIsNoModel) {
  const auto facts = facts_of(formats::Metadata(), {});
  EXPECT_TRUE(facts.layers.empty());
  EXPECT_TRUE(facts.components.empty());
  EXPECT_EQ(facts.n_active(), 0);
}

TEST(ModelFacts, TakeStrangeNamesForTensorsOutsideTheBlocks) {
  for (const auto* name :
       {"blk.", "blk.x.y", "blk.-1.attn_k.weight", "blk.3", "blk.99999999999999999999.a"}) {
    const std::vector<TensorFacts> tensors{{name, Shape{4, 2}, 8}};
    EXPECT_EQ(facts_of(formats::Metadata(), tensors).n_parameters, 8) << name;
  }
}

}  // namespace
}  // namespace hearth::model
