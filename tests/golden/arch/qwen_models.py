"""The Qwen3 family for make_golden.py: configurations, weights worth testing, GGUF names and transforms.

Tensor names and transforms follow llama.cpp's converter; see PROVENANCE.md.
"""

import dataclasses
import re

import gguf
import numpy as np
import transformers

N_TOKENS = 3 + 256 + 8  # of the vocabulary that make_golden.py writes

MODELS = {
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config"),
    "qwen3moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig"),
    "qwen3next": ("Qwen3NextForCausalLM", "Qwen3NextConfig"),
    "qwen35": ("Qwen3_5ForCausalLM", "Qwen3_5TextConfig"),
    "qwen35moe": ("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig"),
}
HYBRID = ("qwen3next", "qwen35", "qwen35moe")
LONG = (*HYBRID, "qwen3moe")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a file may differ that holds the same model."""

    fused_experts: bool = False  # one tensor for gate and up
    joined_input: bool = False  # qwen3next: ssm_in instead of attn_qkv and attn_gate
    prediction_block: bool = False  # a block for multi-token prediction after the trunk
    layer_list: bool = False  # attention.recurrent_layers instead of the interval


def common(**changes) -> dict:
    return dict(vocab_size=N_TOKENS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                num_key_value_heads=1, max_position_embeddings=512, rms_norm_eps=1e-6,
                tie_word_embeddings=False) | changes


def dense(**changes) -> dict:
    return common(head_dim=24, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
                  rope_parameters={"rope_type": "default", "rope_theta": 1e4}) | changes


def experts(n: int, used: int, ffn: int) -> dict:
    return dict(num_experts=n, num_experts_per_tok=used, moe_intermediate_size=ffn,
                norm_topk_prob=True)


def hybrid(sections: bool = True, **changes) -> dict:
    rope = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
    if sections:
        rope |= {"mrope_section": [2, 1, 1], "mrope_interleaved": True}
    return common(num_hidden_layers=4, head_dim=32, intermediate_size=48, linear_conv_kernel_dim=4,
                  linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2,
                  linear_num_value_heads=2, rope_parameters=rope) | changes


SHARED = {"shared_expert_intermediate_size": 24}

# name: (architecture, configuration, layout of the file)
VARIANTS = {
    "qwen3": ("qwen3", dense(tie_word_embeddings=True), Layout()),
    "qwen3moe": ("qwen3moe", dense() | experts(8, 3, 16), Layout()),
    "qwen35": ("qwen35", hybrid(tie_word_embeddings=True, vocab_size=N_TOKENS + 9), Layout()),
    "qwen35-heads": (  # two value heads to a key head, explicit layer types, heads of length 32
        "qwen35", hybrid(num_hidden_layers=3, linear_num_value_heads=4, linear_key_head_dim=32,
                         linear_value_head_dim=32, num_attention_heads=4, num_key_value_heads=2,
                         layer_types=["full_attention", "linear_attention", "linear_attention"]),
        Layout(prediction_block=True, layer_list=True)),
    "qwen35moe": (
        "qwen35moe", hybrid(linear_num_value_heads=4) | experts(8, 3, 16) | SHARED,
        Layout(prediction_block=True)),
    "qwen35moe-fused": (
        "qwen35moe", hybrid(linear_num_value_heads=6) | experts(5, 2, 16) | SHARED,
        Layout(fused_experts=True)),
    "qwen3next": (
        "qwen3next", hybrid(sections=False, linear_num_value_heads=4) | experts(8, 3, 16) | SHARED,
        Layout()),
    "qwen3next-joined": (
        "qwen3next", hybrid(sections=False, linear_num_value_heads=4) | experts(6, 2, 16) | SHARED,
        Layout(joined_input=True)),
}


def make_model(arch: str, config: dict):
    model_class, config_class = (getattr(transformers, name) for name in MODELS[arch])
    made = config_class(**config, attn_implementation="eager", experts_implementation="eager")
    if arch == "qwen3next":  # every layer has experts
        made.mlp_only_layers = []
    return model_class(made).eval()


def is_zero_centred(arch: str, name: str) -> bool:
    """Norms that are stored minus one: all of the hybrid models but the gated one."""
    return arch in HYBRID and name.endswith("norm.weight") and "linear_attn.norm" not in name


def random_value(name: str, shape, noise):
    """Weights that are not drawn as a matrix or norm is; None for those."""
    if name.endswith("A_log"):  # decays from almost nothing to a half per token
        return 1.2 * noise - 1.5
    if name.endswith("dt_bias"):
        return noise
    if name.endswith("conv1d.weight"):
        return 0.7 * noise
    if len(shape) == 3:  # experts [n, out, in]
        return 1.6 * noise / np.sqrt(shape[-1])
    return None


NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
BLOCK_NAMES = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "linear_attn.in_proj_qkv.weight": "attn_qkv.weight",
    "linear_attn.in_proj_z.weight": "attn_gate.weight",
    "linear_attn.in_proj_b.weight": "ssm_beta.weight",
    "linear_attn.in_proj_a.weight": "ssm_alpha.weight",
    "linear_attn.in_proj_ba.weight": "ssm_ba.weight",
    "linear_attn.in_proj_qkvz.weight": "ssm_in.weight",
    "linear_attn.conv1d.weight": "ssm_conv1d.weight",
    "linear_attn.dt_bias": "ssm_dt.bias",
    "linear_attn.A_log": "ssm_a",
    "linear_attn.norm.weight": "ssm_norm.weight",
    "linear_attn.out_proj.weight": "ssm_out.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "mlp.gate.weight": "ffn_gate_inp.weight",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "mlp.experts.down_proj": "ffn_down_exps.weight",
    "mlp.shared_expert.gate_proj.weight": "ffn_gate_shexp.weight",
    "mlp.shared_expert.up_proj.weight": "ffn_up_shexp.weight",
    "mlp.shared_expert.down_proj.weight": "ffn_down_shexp.weight",
    "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight",
}


def gguf_name(arch: str, name: str) -> str:
    if name in NAMES:
        return NAMES[name]
    layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name).groups()
    if rest == "post_attention_layernorm.weight":
        rest = "post_attention_norm.weight" if arch in HYBRID else "ffn_norm.weight"
    return f"blk.{layer}.{BLOCK_NAMES.get(rest, rest)}"


class ValueHeads:
    """Reorders value heads from grouped by key head to tiled, on the axis that has them."""

    def __init__(self, config):
        self.n_key = config.linear_num_key_heads
        self.n_value = config.linear_num_value_heads
        self.dim = config.linear_value_head_dim
        self.values = self.n_value * self.dim

    def tile(self, data: np.ndarray, axis: int = 0) -> np.ndarray:
        """`axis` is one entry, or `dim` of them, for each head."""
        data = np.moveaxis(data, axis, 0)
        grouped = data.reshape(self.n_key, self.n_value // self.n_key, -1, *data.shape[1:])
        return np.moveaxis(grouped.swapaxes(0, 1).reshape(data.shape), 0, axis)

    def tile_last_rows(self, data: np.ndarray) -> np.ndarray:
        """Queries and keys come first and keep their order."""
        return np.concatenate([data[: -self.values], self.tile(data[-self.values :])])


TILED_ROWS = ("in_proj_z.weight", "in_proj_b.weight", "in_proj_a.weight", "dt_bias", "A_log")


def transform(arch: str, config, name: str, data: np.ndarray) -> np.ndarray:
    if is_zero_centred(arch, name):
        data = data + np.float32(1)
    if name.endswith("A_log"):
        data = -np.exp(data)
    if name.endswith("conv1d.weight"):
        data = data.squeeze(1)
    if name.endswith("shared_expert_gate.weight"):
        data = data.squeeze(0)
    if arch in ("qwen35", "qwen35moe") and "linear_attn" in name:
        heads = ValueHeads(config)
        if name.endswith(TILED_ROWS):
            data = heads.tile(data)
        elif name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
            data = heads.tile_last_rows(data)
        elif name.endswith("out_proj.weight"):
            data = heads.tile(data, axis=1)
    return data


def separate_input(config, data: np.ndarray):
    """Rows of in_proj_qkvz, key head by key head [q | k | v | z], as attn_qkv and attn_gate."""
    n, key = config.linear_num_key_heads, config.linear_key_head_dim
    values = config.linear_num_value_heads // n * config.linear_value_head_dim
    parts = np.split(data.reshape(n, -1, data.shape[-1]), [key, 2 * key, 2 * key + values], axis=1)
    q, k, v, z = (part.reshape(-1, data.shape[-1]) for part in parts)
    return np.concatenate([q, k, v]), z


def tensors(arch: str, model, layout: Layout, mtp):
    """(name, array) as the converter writes them."""
    config = model.config
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        data = transform(arch, config, name, weight.numpy())
        target = gguf_name(arch, name)
        if name.endswith("in_proj_qkvz.weight") and not layout.joined_input:
            qkv, gate = separate_input(config, data)
            yield target.replace("ssm_in", "attn_qkv"), qkv
            yield target.replace("ssm_in", "attn_gate"), gate
        elif name.endswith("experts.gate_up_proj") and not layout.fused_experts:
            gate, up = np.split(data, 2, axis=1)
            yield target.replace("gate_up", "gate"), gate
            yield target.replace("gate_up", "up"), up
        else:
            yield target, data
    if mtp is not None:
        yield from mtp.tensors(config.num_hidden_layers)


class MtpHead:
    """Multi-token prediction: a model of one layer of attention behind the projection of [token | hidden row].

    Its embedding and head are those of the trunk. transformers has the layer, and no such head.
    """

    def __init__(self, arch: str, config: dict, randomise):
        one = config | {"num_hidden_layers": 1, "layer_types": ["full_attention"]}
        self.arch, self.config = arch, one
        self.model = make_model(arch, one)
        randomise(self.model)
        noise = np.random.default_rng(7)
        embed = config["hidden_size"]
        self.token_norm, self.hidden_norm = (1 + 0.2 * noise.standard_normal((2, embed))).astype(np.float32)
        self.join = (noise.standard_normal((embed, 2 * embed)) / np.sqrt(2 * embed)).astype(np.float32)

    def tensors(self, block: int):
        yield f"blk.{block}.nextn.enorm.weight", self.token_norm
        yield f"blk.{block}.nextn.hnorm.weight", self.hidden_norm
        yield f"blk.{block}.nextn.eh_proj.weight", self.join
        for name, weight in self.model.state_dict().items():
            data = transform(self.arch, self.model.config, name, weight.numpy())
            if name == "model.norm.weight":
                yield f"blk.{block}.nextn.shared_head_norm.weight", data
            elif ".layers.0." in name:
                target = gguf_name(self.arch, name).replace("blk.0.", f"blk.{block}.")
                if name.endswith("experts.gate_up_proj"):
                    gate, up = np.split(data, 2, axis=1)
                    yield target.replace("gate_up", "gate"), gate
                    yield target.replace("gate_up", "up"), up
                else:
                    yield target, data

    def logits(self, trunk, wide, ids: list[int]) -> np.ndarray:
        """Row p: the token at p + 2, from the trunk's hidden row at p and the token at p + 1.

        `trunk` and `wide` are float64: the model, and this one's in float64.
        """
        import torch

        def norm(x, weight):
            eps = trunk.config.rms_norm_eps
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * torch.from_numpy(weight).double()

        hidden = trunk.model(torch.tensor([ids]), use_cache=False).last_hidden_state[:, :-1]
        tokens = trunk.get_input_embeddings()(torch.tensor([ids[1:]]))
        both = torch.cat([norm(tokens, self.token_norm), norm(hidden, self.hidden_norm)], dim=-1)
        x = both @ torch.from_numpy(self.join).double().T
        own = wide.model(inputs_embeds=x, use_cache=False).last_hidden_state
        return (own @ trunk.get_output_embeddings().weight.T)[0].numpy()


def add_keys(writer: gguf.GGUFWriter, arch: str, config, layout: Layout) -> None:
    """Keys beyond those of every architecture."""
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if "moe" in arch or arch == "qwen3next":
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if arch not in HYBRID:
        return
    writer.add_rope_dimension_count(int(config.head_dim * 0.25))
    if arch != "qwen3next":
        writer.add_rope_dimension_sections(config.rope_parameters["mrope_section"] + [0])
    if "moe" in arch or arch == "qwen3next":
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(config.linear_num_value_heads)
    writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
    if layout.layer_list:
        recurrent = [kind == "linear_attention" for kind in config.layer_types]
        recurrent += [False] * layout.prediction_block
        writer.add_array(f"{arch}.attention.recurrent_layers", recurrent)
    else:
        writer.add_uint32(f"{arch}.full_attention_interval", 4)
    if layout.prediction_block:
        writer.add_uint32(f"{arch}.nextn_predict_layers", 1)
