#!/usr/bin/env python3
"""Makes nano.golden: what transformers computes with the weights of models/nano/nano.gguf, decoded from Q8_0; and
tools.txt: a prompt with a tool, as the model's chat template renders it.

The layout is in PROVENANCE.md. Needs torch, transformers, jinja2 and gguf; see there for versions.
"""

import json
import pathlib
import struct
import sys

import gguf
import jinja2
import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "golden" / "arch"))

import make_golden as arch_golden  # noqa: E402  (found through the path above)
import qwen_models  # noqa: E402

ARCH = "qwen35moe"
STRIDE = 64  # every 64th token's logit is kept
N_TOKENS = 40
SEEDS = (1, 2)  # of prompts of random tokens
QUESTION = "What is the weather in Paris?"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The name of the city"}},
            "required": ["city"],
        },
    },
}


class File:
    """The model file under the names that transformers uses, with its transforms undone."""

    def __init__(self, path: pathlib.Path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {
            tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            for tensor in self.reader.tensors
        }

    def key(self, name: str):
        return self.reader.fields[name].contents()

    def of(self, name: str):
        return self.key(f"{ARCH}.{name}")

    def config(self) -> dict:
        layers = self.of("block_count") - self.of("nextn_predict_layers")
        rotary, head = self.of("rope.dimension_count"), self.of("attention.key_length")
        return dict(
            vocab_size=len(self.tensors["token_embd.weight"]),
            hidden_size=self.of("embedding_length"),
            num_hidden_layers=layers,
            num_attention_heads=self.of("attention.head_count"),
            head_dim=head,
            num_key_value_heads=self.of("attention.head_count_kv"),
            tie_word_embeddings=True,
            max_position_embeddings=self.of("context_length"),
            num_experts=self.of("expert_count"),
            rms_norm_eps=self.of("attention.layer_norm_rms_epsilon"),
            num_experts_per_tok=self.of("expert_used_count"),
            moe_intermediate_size=self.of("expert_feed_forward_length"),
            shared_expert_intermediate_size=self.of("expert_shared_feed_forward_length"),
            linear_conv_kernel_dim=self.of("ssm.conv_kernel"),
            linear_key_head_dim=self.of("ssm.state_size"),
            linear_value_head_dim=self.of("ssm.state_size"),
            linear_num_key_heads=self.of("ssm.group_count"),
            linear_num_value_heads=self.of("ssm.time_step_rank"),
            rope_parameters={
                "rope_type": "default",
                "rope_theta": self.of("rope.freq_base"),
                "partial_rotary_factor": rotary / head,
                "mrope_interleaved": True,
                "mrope_section": list(self.of("rope.dimension_sections"))[:3],
            },
        )

    def untiled(self, heads: qwen_models.ValueHeads, name: str, data: np.ndarray) -> np.ndarray:
        def back(part, axis=0):
            n = part.shape[axis]
            return np.take(part, np.argsort(heads.tile(np.arange(n))), axis)

        if name.endswith(qwen_models.TILED_ROWS):
            return back(data)
        if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
            return np.concatenate([data[: -heads.values], back(data[-heads.values :])])
        return back(data, axis=1) if name.endswith("linear_attn.out_proj.weight") else data

    def weight(self, config, name: str, block: int) -> np.ndarray:
        """The tensor `name` of transformers, of layer 0 if block says where that layer is in the file."""
        target = qwen_models.gguf_name(ARCH, name)
        if ".layers.0." in name:
            target = target.replace("blk.0.", f"blk.{block}.")
        if name.endswith("experts.gate_up_proj"):
            return np.concatenate([self.tensors[target.replace("gate_up", part)] for part in ("gate", "up")], axis=1)
        data = self.tensors[target]
        if qwen_models.is_zero_centred(ARCH, name):
            data = data - np.float32(1)
        if name.endswith("A_log"):
            data = np.log(-data)
        if "linear_attn" in name:
            data = self.untiled(qwen_models.ValueHeads(config), name, data)
        if name.endswith("conv1d.weight"):
            data = data[:, None]
        return data[None] if name.endswith("shared_expert_gate.weight") else data

    def model(self, config: dict, block: int = 0, renamed: dict[str, str] | None = None):
        """A float64 model; call inside InDouble()."""
        torch.set_default_dtype(torch.float64)
        model = qwen_models.make_model(ARCH, config)
        torch.set_default_dtype(torch.float32)
        own = {}
        for name in model.state_dict():
            if name == "lm_head.weight":
                own[name] = self.tensors["token_embd.weight"]
            elif name in (renamed or {}):
                own[name] = self.tensors[renamed[name]] - np.float32(1)
            else:
                own[name] = self.weight(model.config, name, block)
        model.load_state_dict(
            {name: torch.from_numpy(np.ascontiguousarray(data)).double() for name, data in own.items()}
        )
        return model


def prediction_head(file: File, config: dict):
    """(MtpHead without weights of its own, its block as a model)"""
    block = config["num_hidden_layers"]
    head = qwen_models.MtpHead.__new__(qwen_models.MtpHead)
    prefix = f"blk.{block}.nextn."
    head.token_norm, head.hidden_norm = file.tensors[prefix + "enorm.weight"], file.tensors[prefix + "hnorm.weight"]
    head.join = file.tensors[prefix + "eh_proj.weight"]
    one = config | {"num_hidden_layers": 1, "layer_types": ["full_attention"]}
    return head, file.model(one, block, {"model.norm.weight": prefix + "shared_head_norm.weight"})


def prompts(n_vocab: int) -> list[list[int]]:
    rng = [np.random.default_rng(seed) for seed in SEEDS]
    return [generator.integers(0, n_vocab, N_TOKENS).tolist() for generator in rng]


def prompt_with_tool(template: str) -> str:
    """Set up as transformers does."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(template).render(
        messages=[{"role": "user", "content": QUESTION}], tools=[TOOL], add_generation_prompt=True
    )


@torch.no_grad()
def main() -> None:
    file = File(ROOT / "models" / "nano" / "nano.gguf")
    here = pathlib.Path(__file__).parent
    (here / "tools.txt").write_text(prompt_with_tool(file.key("tokenizer.chat_template")))
    config = file.config()
    with arch_golden.InDouble():
        trunk = file.model(config)
        head, block = prediction_head(file, config)
        with (here / "nano.golden").open("wb") as out:
            chosen = prompts(config["vocab_size"])
            out.write(struct.pack("<4i", len(chosen), N_TOKENS, config["vocab_size"], STRIDE))
            for ids in chosen:
                logits = trunk(torch.tensor([ids]), use_cache=False).logits[0].numpy()
                predicted = head.logits(trunk, block, ids)
                out.write(np.array(ids, "<i4").tobytes())
                for rows in (logits, predicted):
                    out.write(rows[:, ::STRIDE].astype("<f4").tobytes())
                print(
                    f"{len(ids)} tokens, largest logit {np.abs(logits).max():.2f}, "
                    f"of the prediction block {np.abs(predicted).max():.2f}"
                )


if __name__ == "__main__":
    main()
