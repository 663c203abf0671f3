"""Weights as files hold them: BF16, and Q8_0 for the matrices that `hearth convert --type q8_0` stores so."""

import torch

BLOCK = 32
ALWAYS_F32 = (
    "norm.weight",
    "A_log",
    "dt_bias",
    "conv1d.weight",
    "mlp.gate.weight",
    "shared_expert_gate.weight",
    "pre_fc_norm_embedding.weight",
    "pre_fc_norm_hidden.weight",
    "layernorm.weight",
)


def as_bf16(name: str, weight: torch.Tensor) -> torch.Tensor:
    """transformers keeps the two f32 vectors of a recurrent layer."""
    return weight if name.endswith(("A_log", "linear_attn.norm.weight")) else weight.bfloat16().float()


def as_q8_0(name: str, weight: torch.Tensor) -> torch.Tensor:
    """Of BF16 weights: blocks of 32 along a row share an f16 scale, the largest magnitude over 127."""
    weight = as_bf16(name, weight)
    if name.endswith(ALWAYS_F32):
        return weight
    blocks = weight.view(-1, BLOCK)
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    steps = blocks * torch.where(scale > 0, 1 / scale, 0)
    steps = torch.where(steps < 0, -1, 1) * (steps.abs() + 0.5).floor()  # halves away from zero
    return (steps * scale.half().float()).view_as(weight)


ROUNDINGS = {"bf16": as_bf16, "q8_0": as_q8_0}


def rounded(weights: dict[str, torch.Tensor], how: str) -> dict[str, torch.Tensor]:
    return {name: ROUNDINGS[how](name, weight.float()) for name, weight in weights.items()}
