"""Weights as a Hugging Face folder, as transformers and `hearth convert` read it.

export.py CHECKPOINT FOLDER [SHAPE]
"""

import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch

import places
from shape import SHAPES, Shape

CONTEXT = 2048  # trained length


def hugging_face_config(shape: Shape) -> dict:
    """Of the text model, as transformers' classes take it."""
    pairs = shape.rotary // 2
    config = {
        "vocab_size": shape.vocab,
        "hidden_size": shape.embed,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": shape.eps,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attn_output_gate": True,
        "linear_conv_kernel_dim": shape.conv,
        "linear_key_head_dim": shape.state_dim,
        "linear_value_head_dim": shape.state_dim,
        "linear_num_key_heads": shape.key_heads,
        "linear_num_value_heads": shape.value_heads,
        "mtp_num_hidden_layers": 1,
        "layer_types": ["full_attention" if shape.is_full(i) else "linear_attention" for i in range(shape.layers)],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": shape.rope_base,
            "mrope_interleaved": True,
            "mrope_section": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3],
            "partial_rotary_factor": shape.rotary / shape.head_dim,
        },
    }
    if shape.experts:
        return config | {
            "num_experts": shape.experts,
            "num_experts_per_tok": shape.used,
            "moe_intermediate_size": shape.expert_ffn,
            "shared_expert_intermediate_size": shape.shared_ffn,
        }
    return config | {"intermediate_size": shape.dense_ffn}


def write_folder(weights: dict[str, torch.Tensor], shape: Shape, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kind = "qwen3_5_moe_text" if shape.experts else "qwen3_5_text"
    architecture = "Qwen3_5MoeForCausalLM" if shape.experts else "Qwen3_5ForCausalLM"
    ends = json.loads((places.TOKENIZER / "generation_config.json").read_text())["eos_token_id"]
    config = {
        "architectures": [architecture],
        "model_type": kind,
        "dtype": "bfloat16",
        "eos_token_id": ends[0],
    } | hugging_face_config(shape)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    low = {
        name: (weight if name.endswith(("A_log", "linear_attn.norm.weight")) else weight.bfloat16()).contiguous()
        for name, weight in weights.items()
    }
    safetensors.torch.save_file(low, folder / "model.safetensors", metadata={"format": "pt"})
    for file in places.TOKENIZER.iterdir():
        shutil.copy(file, folder)


if __name__ == "__main__":
    loaded = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
    write_folder(loaded["weights"], SHAPES[sys.argv[3] if len(sys.argv) > 3 else "mixture"], pathlib.Path(sys.argv[2]))
