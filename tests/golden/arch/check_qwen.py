"""The Qwen3 family for check_golden.py: a forward pass in numpy that knows GGUF keys and tensors only."""

import numpy as np

ARCHITECTURES = ("qwen3", "qwen3moe", "qwen3next", "qwen35", "qwen35moe")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def rotate(model, x):
    """The first dimensions of x [tokens, heads, dims], in pairs (i, i + half)."""
    n_rotated = model.keys.get("rope.dimension_count", x.shape[-1])
    half = n_rotated // 2
    frequencies = model.keys["rope.freq_base"] ** (-np.arange(half) / half)
    angles = np.arange(len(x))[:, None, None] * frequencies
    cos, sin = np.cos(angles), np.sin(angles)
    first, second, rest = np.split(x, [half, n_rotated], axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin, rest], axis=-1)


def attention(model, block, x):
    keys, eps = model.keys, model.keys["attention.layer_norm_rms_epsilon"]
    n_heads, n_kv = keys["attention.head_count"], keys["attention.head_count_kv"]
    dims = keys["attention.key_length"]
    q = (x @ model[block + "attn_q.weight"].T).reshape(len(x), n_heads, -1)
    gate = q[..., dims:]  # empty where there is none
    k = (x @ model[block + "attn_k.weight"].T).reshape(len(x), n_kv, dims)
    v = (x @ model[block + "attn_v.weight"].T).reshape(len(x), n_kv, dims)
    q = rotate(model, rms_norm(q[..., :dims], model[block + "attn_q_norm.weight"], eps))
    k = rotate(model, rms_norm(k, model[block + "attn_k_norm.weight"], eps))
    k, v = (np.repeat(y, n_heads // n_kv, axis=1) for y in (k, v))
    scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(dims)
    scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = np.einsum("hts,shd->thd", weights, v)
    if gate.size:
        y = y * sigmoid(gate)
    return y.reshape(len(x), -1) @ model[block + "attn_output.weight"].T


def projections(model, block, x, n_k, n_v, d_k, d_v):
    """q, k, v before the convolution joined, then z, b and a."""
    r = n_v // n_k
    if block + "ssm_in.weight" in model.tensors:
        joined = (x @ model[block + "ssm_in.weight"].T).reshape(len(x), n_k, -1)
        q, k, v, z = (part.reshape(len(x), -1)
                      for part in np.split(joined, [d_k, 2 * d_k, 2 * d_k + r * d_v], axis=2))
        qkv = np.concatenate([q, k, v], axis=1)
    else:
        qkv = x @ model[block + "attn_qkv.weight"].T
        z = x @ model[block + "attn_gate.weight"].T
    if block + "ssm_ba.weight" in model.tensors:
        both = (x @ model[block + "ssm_ba.weight"].T).reshape(len(x), n_k, 2, r)
        b, a = (both[:, :, i].reshape(len(x), n_v) for i in (0, 1))
    else:
        b = x @ model[block + "ssm_beta.weight"].T
        a = x @ model[block + "ssm_alpha.weight"].T
    return qkv, z.reshape(len(x), n_v, d_v), b, a


def delta_net(model, block, x):
    keys, eps = model.keys, model.keys["attention.layer_norm_rms_epsilon"]
    n_k, n_v = keys["ssm.group_count"], keys["ssm.time_step_rank"]
    d_k, d_v = keys["ssm.state_size"], keys["ssm.inner_size"] // n_v
    u, z, b, a = projections(model, block, x, n_k, n_v, d_k, d_v)
    taps = model[block + "ssm_conv1d.weight"]  # [channels, taps]
    padded = np.concatenate([np.zeros((taps.shape[1] - 1, u.shape[1])), u])
    c = silu(sum(padded[j : j + len(x)] * taps[:, j] for j in range(taps.shape[1])))
    q, k, v = np.split(c, [n_k * d_k, 2 * n_k * d_k], axis=1)
    q, k = (y.reshape(len(x), n_k, d_k) for y in (q, k))
    q, k = (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6) for y in (q, k))
    head = np.arange(n_v) // (n_v // n_k) if model.arch == "qwen3next" else np.arange(n_v) % n_k
    q, k, v = q[:, head] / np.sqrt(d_k), k[:, head], v.reshape(len(x), n_v, d_v)
    decay = np.exp(model[block + "ssm_a"] * np.log1p(np.exp(a + model[block + "ssm_dt.bias"])))
    memory = np.zeros((n_v, d_k, d_v))
    y = np.empty_like(v)
    for t in range(len(x)):
        memory *= decay[t][:, None, None]
        delta = sigmoid(b[t])[:, None] * (v[t] - np.einsum("hkv,hk->hv", memory, k[t]))
        memory += k[t][:, :, None] * delta[:, None, :]
        y[t] = np.einsum("hkv,hk->hv", memory, q[t])
    y = rms_norm(y, model[block + "ssm_norm.weight"], eps) * silu(z)
    return y.reshape(len(x), -1) @ model[block + "ssm_out.weight"].T


def experts(model, block, x):
    logits = x @ model[block + "ffn_gate_inp.weight"].T
    p = np.exp(logits - logits.max(-1, keepdims=True))
    n_used = model.keys["expert_used_count"]
    if block + "ffn_gate_up_exps.weight" in model.tensors:
        gate, up = np.split(model[block + "ffn_gate_up_exps.weight"], 2, axis=1)
    else:
        gate, up = model[block + "ffn_gate_exps.weight"], model[block + "ffn_up_exps.weight"]
    down = model[block + "ffn_down_exps.weight"]
    y = np.zeros_like(x)
    for t, row in enumerate(x):
        chosen = np.argsort(-p[t], kind="stable")[:n_used]
        for e in chosen:
            y[t] += p[t, e] / p[t, chosen].sum() * (down[e] @ (silu(gate[e] @ row) * (up[e] @ row)))
    if block + "ffn_gate_inp_shexp.weight" in model.tensors:
        share = sigmoid(x @ model[block + "ffn_gate_inp_shexp.weight"])
        y += share[:, None] * dense(model, block, x, "_shexp")
    return y


def dense(model, block, x, suffix=""):
    gate, up, down = (model[f"{block}ffn_{name}{suffix}.weight"] for name in ("gate", "up", "down"))
    return (silu(x @ gate.T) * (x @ up.T)) @ down.T


def is_recurrent(model, layer):
    if model.arch in ("qwen3", "qwen3moe"):
        return False
    listed = model.keys.get("attention.recurrent_layers")
    if listed is not None:
        return bool(listed[layer])
    return (layer + 1) % model.keys["full_attention_interval"] != 0


def forward(model, ids):
    eps = model.keys["attention.layer_norm_rms_epsilon"]
    hybrid = model.arch not in ("qwen3", "qwen3moe")
    x = model["token_embd.weight"][ids]
    for layer in range(model.keys["block_count"] - model.keys.get("nextn_predict_layers", 0)):
        block = f"blk.{layer}."
        mixer = delta_net if is_recurrent(model, layer) else attention
        x = x + mixer(model, block, rms_norm(x, model[block + "attn_norm.weight"], eps))
        norm = model[block + ("post_attention_norm" if hybrid else "ffn_norm") + ".weight"]
        ffn = experts if "expert_count" in model.keys else dense
        x = x + ffn(model, block, rms_norm(x, norm, eps))
    head = model.tensors.get("output.weight", model["token_embd.weight"])
    return rms_norm(x, model["output_norm.weight"], eps) @ head.T
