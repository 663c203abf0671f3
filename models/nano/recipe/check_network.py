"""Compares network.py, in f32, with transformers: logits of a tiny model, with experts and without; and the
gradients of the delta rule with those through the recurrence, token by token.

Prints the largest differences, as shares of the largest number; fails above 2e-5.
"""

import sys

import torch
import transformers

from delta_rule import CHUNK, gated_delta_rule
from export import hugging_face_config
from network import Network
from shape import SHAPES


def compare(name: str) -> float:
    torch.manual_seed(3)
    shape = SHAPES[name]
    ours = Network(shape, low=torch.float32).eval()
    for parameter in ours.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)
    config = hugging_face_config(shape)
    model_class = transformers.Qwen3_5MoeForCausalLM if shape.experts else transformers.Qwen3_5ForCausalLM
    config_class = transformers.Qwen3_5MoeTextConfig if shape.experts else transformers.Qwen3_5TextConfig
    theirs = model_class(config_class(**config)).eval()
    missing, unexpected = theirs.load_state_dict(ours.state_dict(), strict=False)
    assert missing == ["lm_head.weight"], missing
    assert all(key.startswith("mtp.") for key in unexpected), unexpected
    theirs.tie_weights()
    ids = torch.randint(0, shape.vocab, (2, 192))
    with torch.no_grad():
        mine = ours.logits(ours.hidden(ids)[0])
        other = theirs(ids, use_cache=False).logits
    return ((mine - other).abs().max() / other.abs().max()).item()


def compare_gradients() -> float:
    torch.manual_seed(5)
    tokens = 3 * CHUNK
    q, k, v = (torch.randn(1, tokens, n, 16, dtype=torch.float64) for n in (1, 1, 2))
    log_decay = -torch.rand(1, tokens, 2, dtype=torch.float64)
    beta = torch.rand(1, tokens, 2, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (q, k, v, log_decay, beta)]

    def recurrence(q, k, v, log_decay, beta):
        q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
        q, k = ((x * scale).repeat_interleave(2, 2) for x, scale in ((q, 16**-0.5), (k, 1)))
        state, out = torch.zeros(1, 2, 16, 16, dtype=torch.float64), []
        for t in range(tokens):
            state = state * log_decay[:, t].exp()[..., None, None]
            delta = beta[:, t, :, None] * (v[:, t] - (k[:, t, :, :, None] * state).sum(-2))
            state = state + k[:, t, :, :, None] * delta[..., None, :]
            out.append((q[:, t, :, :, None] * state).sum(-2))
        return torch.stack(out, 1)

    probe = torch.randn(1, tokens, 2, 16, dtype=torch.float64)
    results = []
    for rule in (gated_delta_rule, recurrence):
        results.append(torch.autograd.grad((rule(*inputs).double() * probe).sum(), inputs))
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(*results))


if __name__ == "__main__":
    differences = {name: compare(name) for name in ("tiny", "tiny-dense")} | {"gradients": compare_gradients()}
    print(differences)
    sys.exit(max(differences.values()) > 2e-5)
