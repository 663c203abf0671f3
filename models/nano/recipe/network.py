"""The model for training: Qwen3.5's hybrid decoder with experts and one block for multi-token prediction.

The same parameters, names and arithmetic as transformers' Qwen3_5MoeForCausalLM (Qwen3_5ForCausalLM without
experts), with `mtp.` as released checkpoints name that block; check_network.py compares them. Weights are f32 and
products bf16 where `low` says so.
"""

import torch
import torch.nn.functional as F
from torch import nn

from delta_rule import gated_delta_rule
from shape import Shape


def matrix(out: int, inner: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(out, inner) * inner**-0.5)


class Weight(nn.Module):
    """Holds a parameter called `weight`, so that names match those of a linear layer."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        self.weight = weight if isinstance(weight, nn.Parameter) else nn.Parameter(weight)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


class Norm(nn.Module):
    """x / rms(x) (1 + weight), in f32; the result has the type of the products that follow."""

    def __init__(self, size: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


def rotate(x, rotary: int, base: float):
    """Half-split rotation of the first `rotary` dimensions; x [batch, tokens, heads, dim]."""
    half = rotary // 2
    rate = base ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)[:, None, None] * rate
    cos, sin = angle.cos(), angle.sin()
    a, b, rest = x.split((half, half, x.shape[-1] - rotary), dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        inner, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = Weight(matrix(2 * inner, shape.embed))
        self.k_proj, self.v_proj = Weight(matrix(kv, shape.embed)), Weight(matrix(kv, shape.embed))
        self.o_proj = Weight(matrix(shape.embed, inner))
        self.q_norm, self.k_norm = Norm(shape.head_dim, shape.eps), Norm(shape.head_dim, shape.eps)

    def forward(self, x):
        batch, tokens, _ = x.shape
        s = self.shape
        q, gate = self.q_proj(x).view(batch, tokens, s.heads, 2 * s.head_dim).chunk(2, dim=-1)
        k = self.k_proj(x).view(batch, tokens, s.kv_heads, s.head_dim)
        v = self.v_proj(x).view(batch, tokens, s.kv_heads, s.head_dim)
        q, k = (rotate(y, s.rotary, s.rope_base).to(x.dtype) for y in (self.q_norm(q), self.k_norm(k)))
        out = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=True
        ).transpose(1, 2)
        return self.o_proj((out * torch.sigmoid(gate)).reshape(batch, tokens, -1))


class DeltaNet(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.keys, self.values = shape.key_heads * shape.state_dim, shape.value_heads * shape.state_dim
        channels = 2 * self.keys + self.values
        self.in_proj_qkv, self.in_proj_z = (
            Weight(matrix(channels, shape.embed)),
            Weight(matrix(self.values, shape.embed)),
        )
        self.in_proj_b = Weight(matrix(shape.value_heads, shape.embed))
        self.in_proj_a = Weight(matrix(shape.value_heads, shape.embed))
        self.conv1d = Weight(torch.randn(channels, 1, shape.conv) * shape.conv**-0.5)
        # Decays from a half to almost none a token: exp(-A softplus(dt_bias)).
        self.A_log = nn.Parameter(torch.empty(shape.value_heads).uniform_(1, 16).log())
        step = torch.exp(torch.empty(shape.value_heads).uniform_(-6.9, -2.3))
        self.dt_bias = nn.Parameter(step + torch.log(-torch.expm1(-step)))
        self.norm = Weight(torch.ones(shape.state_dim))
        self.out_proj = Weight(matrix(shape.embed, self.values))

    def convolve(self, x):
        """Causal, depthwise, over the last `conv` tokens; x [batch, tokens, channels]."""
        taps = self.conv1d.weight.squeeze(1).to(x.dtype)
        padded = F.pad(x, (0, 0, taps.shape[1] - 1, 0))
        return F.silu(sum(padded[:, i : i + x.shape[1]] * taps[:, i] for i in range(taps.shape[1])))

    def forward(self, x):
        batch, tokens, _ = x.shape
        s = self.shape
        q, k, v = self.convolve(self.in_proj_qkv(x)).split((self.keys, self.keys, self.values), dim=-1)
        q, k, v = (y.reshape(batch, tokens, -1, s.state_dim) for y in (q, k, v))
        beta = torch.sigmoid(self.in_proj_b(x).float())
        log_decay = -torch.exp(self.A_log) * F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        out = gated_delta_rule(q, k, v, log_decay, beta).float()
        out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + s.eps) * self.norm.weight
        gate = F.silu(self.in_proj_z(x).float()).view(batch, tokens, s.value_heads, s.state_dim)
        return self.out_proj((out * gate).to(x.dtype).reshape(batch, tokens, -1))


class Dense(nn.Module):
    def __init__(self, embed: int, ffn: int):
        super().__init__()
        self.gate_proj, self.up_proj = Weight(matrix(ffn, embed)), Weight(matrix(ffn, embed))
        self.down_proj = Weight(matrix(embed, ffn))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class _Spread(torch.autograd.Function):
    """Row r of x once for each of its `used` experts, sorted by expert. The gradient is a gather too, not a scatter."""

    @staticmethod
    def forward(ctx, x, order, back, used):
        ctx.save_for_backward(order, back)
        ctx.used = used
        return x[order // used]

    @staticmethod
    def backward(ctx, gradient):
        _, back = ctx.saved_tensors
        return gradient[back].view(-1, ctx.used, gradient.shape[-1]).sum(1), None, None, None


class _Collect(torch.autograd.Function):
    """Undoes the order of _Spread."""

    @staticmethod
    def forward(ctx, x, order, back):
        ctx.save_for_backward(order)
        return x[back]

    @staticmethod
    def backward(ctx, gradient):
        (order,) = ctx.saved_tensors
        return gradient[order], None, None


class Experts(nn.Module):
    """All experts as two tensors; rows are sorted by expert, so that each is one group of a grouped product."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_up_proj = nn.Parameter(
            torch.randn(shape.experts, 2 * shape.expert_ffn, shape.embed) * shape.embed**-0.5
        )
        self.down_proj = nn.Parameter(
            torch.randn(shape.experts, shape.embed, shape.expert_ffn) * shape.expert_ffn**-0.5
        )

    def forward(self, x, chosen, weights):
        """x [rows, embed], chosen and weights [rows, used]; also the number of rows of each expert."""
        n_experts, used = self.gate_up_proj.shape[0], chosen.shape[1]
        experts, order = chosen.reshape(-1).sort(stable=True)
        ends = torch.searchsorted(experts, torch.arange(n_experts, device=x.device), right=True)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=x.device))
        offsets = ends.to(torch.int32)
        gate, up = self._grouped(_Spread.apply(x, order, back, used), self.gate_up_proj, offsets).chunk(2, dim=-1)
        out = _Collect.apply(self._grouped(F.silu(gate) * up, self.down_proj, offsets), order, back)
        out = (out.view(-1, used, x.shape[-1]) * weights[..., None].to(x.dtype)).sum(1)
        return out, ends.diff(prepend=ends.new_zeros(1))

    @staticmethod
    def _grouped(x, weights, ends):
        if x.is_cuda:
            return torch._grouped_mm(x, weights.to(x.dtype).mT, offs=ends)
        parts = x.tensor_split(ends[:-1].long())
        return torch.cat([part @ weight.to(x.dtype).T for part, weight in zip(parts, weights)])


class Mixture(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.used = shape.used
        self.gate = Weight(matrix(shape.experts, shape.embed))
        self.experts = Experts(shape)
        self.shared_expert = Dense(shape.embed, shape.shared_ffn)
        self.shared_expert_gate = Weight(matrix(1, shape.embed))

    def forward(self, x):
        """(out, balance, chosen): balance is 1 when all experts are used alike, more otherwise."""
        rows = x.reshape(-1, x.shape[-1])
        odds = F.linear(rows.float(), self.gate.weight)
        probabilities = odds.softmax(-1)
        weights, chosen = probabilities.topk(self.used, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out, load = self.experts(rows, chosen, weights)
        out = out + torch.sigmoid(self.shared_expert_gate(rows)) * self.shared_expert(rows)
        balance = odds.shape[-1] * (load / chosen.numel() * probabilities.mean(0)).sum()
        return out.view_as(x), balance, chosen


class Block(nn.Module):
    def __init__(self, shape: Shape, full: bool):
        super().__init__()
        self.input_layernorm = Norm(shape.embed, shape.eps)
        self.post_attention_layernorm = Norm(shape.embed, shape.eps)
        if full:
            self.self_attn = Attention(shape)
        else:
            self.linear_attn = DeltaNet(shape)
        self.mixer = "self_attn" if full else "linear_attn"
        self.mlp = Mixture(shape) if shape.experts else Dense(shape.embed, shape.dense_ffn)

    def forward(self, x, low):
        """x f32 -> (x, balance, chosen experts or None)"""
        x = x + getattr(self, self.mixer)(self.input_layernorm(x).to(low)).float()
        out = self.mlp(self.post_attention_layernorm(x).to(low))
        out, balance, chosen = out if isinstance(out, tuple) else (out, x.new_zeros(()), None)
        return x + out.float(), balance, chosen


class Trunk(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = Weight(torch.randn(shape.vocab, shape.embed) * 0.02)
        self.layers = nn.ModuleList(Block(shape, shape.is_full(i)) for i in range(shape.layers))
        self.norm = Norm(shape.embed, shape.eps)


class Prediction(nn.Module):
    """mtp.*: from the hidden row of a position and the next token, the hidden row of the token after that."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.pre_fc_norm_embedding = Norm(shape.embed, shape.eps)
        self.pre_fc_norm_hidden = Norm(shape.embed, shape.eps)
        self.fc = Weight(matrix(shape.embed, 2 * shape.embed))
        self.layers = nn.ModuleList([Block(shape, full=True)])
        self.norm = Norm(shape.embed, shape.eps)

    def forward(self, embedded, hidden, low):
        both = torch.cat((self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)), dim=-1)
        x, balance, chosen = self.layers[0](self.fc(both.to(low)).float(), low)
        return self.norm(x), balance, chosen


class Network(nn.Module):
    def __init__(self, shape: Shape, low=torch.bfloat16):
        super().__init__()
        self.low = low
        self.model = Trunk(shape)
        self.mtp = Prediction(shape)
        for block in (*self.model.layers, *self.mtp.layers):  # residual branches start small
            for name, weight in block.named_parameters():
                if "o_proj" in name or "out_proj" in name or "down_proj" in name:
                    weight.data.mul_(0.3)

    def hidden(self, ids):
        """[batch, tokens, embed] after the final norm; the balance of all layers; the experts of each."""
        x = F.embedding(ids, self.model.embed_tokens.weight)
        balance, choices = x.new_zeros(()), []
        for block in self.model.layers:
            x, more, chosen = block(x, self.low)
            balance = balance + more
            choices.append(chosen)
        return self.model.norm(x), balance, choices

    def predicted(self, hidden, next_ids):
        """Rows from which the token two on is predicted."""
        return self.mtp(F.embedding(next_ids, self.model.embed_tokens.weight), hidden, self.low)

    def logits(self, hidden):
        return self.model.embed_tokens(hidden.to(self.low))

    def entropy(self, hidden, targets):
        """Of each target, in nats."""
        logits = self.logits(hidden).float().flatten(0, 1)
        return F.cross_entropy(logits, targets.flatten(), reduction="none").view_as(targets)

    def losses(self, ids):
        """ids [batch, tokens + 2] -> mean cross entropy of the next token, of the one after it, and the balance."""
        hidden, balance, _ = self.hidden(ids[:, :-2])
        further, more, _ = self.predicted(hidden, ids[:, 1:-1])
        return self.entropy(hidden, ids[:, 1:-1]).mean(), self.entropy(further, ids[:, 2:]).mean(), balance + more

    def compile_parts(self) -> None:
        """Blocks one by one: those of one kind share their code, which takes a third of the time."""
        for block in (*self.model.layers, *self.mtp.layers):
            block.compile(dynamic=False)
        self.entropy = torch.compile(self.entropy, dynamic=False)
