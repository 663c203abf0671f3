"""Optimisers: Muon for matrices, AdamW for embeddings, vectors, routers and other small weights.

Muon (Jordan and others, 2024) orthogonalises the momentum of each matrix; the factor 0.2 sqrt(larger side) gives its
updates the size of AdamW's (Liu and others, 2025, "Muon is scalable for LLM training"), so that both share one rate.
"""

import collections

import torch
from torch import nn

SMALL = 32  # a matrix with a shorter side is AdamW's


def is_for_muon(name: str, parameter: nn.Parameter) -> bool:
    return (
        parameter.dim() >= 2
        and min(parameter.shape[-2:]) >= SMALL
        and not name.endswith(("embed_tokens.weight", "mlp.gate.weight"))
    )


def orthogonalised(x: torch.Tensor) -> torch.Tensor:
    """Newton-Schulz iteration towards U V^T of each matrix of x [n, rows, columns]."""
    tall = x.shape[-2] > x.shape[-1]
    x = (x.mT if tall else x).bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.mT if tall else x


_compiled_orthogonalised = torch.compile(orthogonalised, dynamic=False) if torch.cuda.is_available() else orthogonalised


class Muon:
    """The parameters of one shape are one batch."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95, decay: float = 0.1):
        self.momentum, self.decay = momentum, decay
        self.groups = collections.defaultdict(list)
        for parameter in parameters:
            self.groups[tuple(parameter.shape[-2:])].append(parameter)
        self.buffers = {
            shape: torch.zeros(sum(p.numel() for p in group) // (shape[0] * shape[1]), *shape, device=group[0].device)
            for shape, group in self.groups.items()
        }

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for shape, group in self.groups.items():
            gradient = torch.cat([p.grad.view(-1, *shape) for p in group])
            buffer = self.buffers[shape].lerp_(gradient, 1 - self.momentum)
            update = _compiled_orthogonalised(gradient.lerp(buffer, self.momentum)).float()
            sizes = [p.numel() // (shape[0] * shape[1]) for p in group]
            torch._foreach_mul_(group, 1 - rate * self.decay)
            torch._foreach_add_(
                group,
                [part.view_as(p) for part, p in zip(update.split(sizes), group)],
                alpha=-rate * 0.2 * max(shape) ** 0.5,
            )


class Optimiser:
    """Both, with one rate."""

    def __init__(self, model: nn.Module):
        named = list(model.named_parameters())
        self.muon = Muon([p for name, p in named if is_for_muon(name, p)])
        rest = [p for name, p in named if not is_for_muon(name, p)]
        self.adam = torch.optim.AdamW(rest, betas=(0.9, 0.95), weight_decay=0.0, fused=rest[0].is_cuda)

    def step(self, rate: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        self.muon.step(rate)
        for parameter in (
            *(p for group in self.muon.groups.values() for p in group),
            *self.adam.param_groups[0]["params"],
        ):
            parameter.grad = None

    def state(self) -> dict:
        return {"adam": self.adam.state_dict(), "muon": list(self.muon.buffers.values())}

    def load(self, state: dict) -> None:
        self.adam.load_state_dict(state["adam"])
        for buffer, saved in zip(self.muon.buffers.values(), state["muon"]):
            buffer.copy_(saved)
