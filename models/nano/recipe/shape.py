"""Sizes of the model and of the dense control of the same active size."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    vocab: int = 10_240
    embed: int = 256
    layers: int = 8
    interval: int = 4  # every fourth layer has full attention
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 128
    rotary: int = 32  # of head_dim
    rope_base: float = 1e5
    key_heads: int = 2  # of recurrent layers
    value_heads: int = 4
    state_dim: int = 128
    conv: int = 4
    experts: int = 32  # 0: a dense feed-forward network of expert_ffn + shared_ffn
    used: int = 4
    expert_ffn: int = 128
    shared_ffn: int = 128
    eps: float = 1e-6

    def is_full(self, layer: int) -> bool:
        return (layer + 1) % self.interval == 0

    @property
    def dense_ffn(self) -> int:
        """What one token uses of the mixture."""
        return self.used * self.expert_ffn + self.shared_ffn


MIXTURE = Shape()
DENSE = dataclasses.replace(MIXTURE, experts=0)
TINY = Shape(
    vocab=10_240,
    embed=32,
    layers=4,
    heads=2,
    kv_heads=1,
    head_dim=32,
    rotary=8,
    key_heads=1,
    value_heads=2,
    state_dim=32,
    experts=8,
    used=2,
    expert_ffn=16,
    shared_ffn=16,
)
SHAPES = {"mixture": MIXTURE, "dense": DENSE, "tiny": TINY, "tiny-dense": dataclasses.replace(TINY, experts=0)}
