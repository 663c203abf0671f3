#!/usr/bin/env python3
"""Re-derives the golden logits and greedy tokens from the GGUF files with numpy, in float64.

An independent reading of the files: it knows GGUF keys and tensors only, not the configuration that
made them. Also prints how much the logits move when one key or tensor is ignored: what the golden
data can detect. Needs numpy and gguf. Exit status 1 when a file disagrees.
"""

import pathlib
import sys

import gguf
import numpy as np

import check_qwen

TOLERANCE = 1e-6  # relative to max |logit|: float64 arithmetic on the file's float32 values
HYBRID_TOLERANCE = 4e-6  # their files round -exp(A_log) and 1 + norm, which the golden logits do not
IGNORABLE = ("rope.scaling.factor", "rope.scaling.attn_factor",
             "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.freq_base_swa",
             "attention.sliding_window", "attention.sliding_window_pattern", "attention.scale",
             "rope_freqs.weight", "blk.0.attn_q.bias", "blk.0.attn_output.bias",
             "blk.0.ffn_gate_inp_shexp.weight")


class Model:
    """Metadata with the architecture prefix removed, and tensors as [rows, columns]."""

    def __init__(self, path: pathlib.Path):
        reader = gguf.GGUFReader(path)
        self.arch = reader.fields["general.architecture"].contents()
        prefix = self.arch + "."
        self.keys = {k.removeprefix(prefix): f.contents() for k, f in reader.fields.items()
                     if k.startswith(prefix)}
        self.tensors = {t.name: t.data.astype(np.float64) for t in reader.tensors}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[name]

    def ignoring(self, name: str):
        other = object.__new__(Model)
        other.arch = self.arch
        other.keys = {k: v for k, v in self.keys.items() if k != name}
        other.tensors = {k: v for k, v in self.tensors.items() if k != name}
        return other

    @property
    def head_dim(self) -> int:
        return self.keys.get("attention.key_length",
                             self.keys["embedding_length"] // self.keys["attention.head_count"])

    def is_sliding(self, layer: int) -> bool:
        if self.arch != "gemma3" or "attention.sliding_window" not in self.keys:
            return False
        return (layer + 1) % self.keys.get("attention.sliding_window_pattern", 6) != 0


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def yarn_weights(keys, base, dims):
    """Per frequency: 1 where YaRN keeps it, 0 where it divides it by the factor."""
    context = keys["rope.scaling.original_context_length"]

    def dimension(rotations):
        return dims * np.log(context / (rotations * 2 * np.pi)) / (2 * np.log(base))

    low = max(np.floor(dimension(keys.get("rope.scaling.yarn_beta_fast", 32.0))), 0)
    high = min(np.ceil(dimension(keys.get("rope.scaling.yarn_beta_slow", 1.0))), dims - 1)
    return 1 - np.clip((np.arange(dims // 2) - low) / max(0.001, high - low), 0, 1)


def rope_tables(model, sliding, n_tokens):
    """cos and sin, [n_tokens, dims / 2]."""
    keys = model.keys
    dims = keys.get("rope.dimension_count", model.head_dim)
    base = keys.get("rope.freq_base_swa", 10000.0) if sliding else keys["rope.freq_base"]
    frequencies = base ** (-np.arange(0, dims, 2) / dims)
    amplitude = 1.0
    if "rope_freqs.weight" in model.tensors:
        frequencies = frequencies / model["rope_freqs.weight"]
    factor = 1.0 if sliding else keys.get("rope.scaling.factor", 1.0)
    kind = keys.get("rope.scaling.type", "linear" if "rope.scaling.factor" in keys else "none")
    if kind == "linear":
        frequencies = frequencies / factor
    elif kind == "yarn":
        kept = yarn_weights(keys, base, dims)
        frequencies = frequencies * (kept + (1 - kept) / factor)
        amplitude = (0.1 * np.log(factor) + 1) * keys.get("rope.scaling.attn_factor", 1.0)
    angles = np.arange(n_tokens)[:, None] * frequencies
    return np.cos(angles) * amplitude, np.sin(angles) * amplitude


def rotate(x, tables, neighbours):
    """x [heads, tokens, dims]; pairs are (2j, 2j+1) or (j, j + dims/2)."""
    cos, sin = tables
    half = x.shape[-1] // 2
    first = np.s_[..., 0::2] if neighbours else np.s_[..., :half]
    second = np.s_[..., 1::2] if neighbours else np.s_[..., half:]
    out = np.empty_like(x)
    out[first] = x[first] * cos - x[second] * sin
    out[second] = x[first] * sin + x[second] * cos
    return out


def attention(model, layer, x):
    keys, block = model.keys, f"blk.{layer}."
    n_tokens, dims = len(x), model.head_dim
    n_heads = keys["attention.head_count"]
    n_kv_heads = keys.get("attention.head_count_kv", n_heads)
    eps = keys["attention.layer_norm_rms_epsilon"]

    def project(name, y):
        bias = model.tensors.get(block + name + ".bias", 0.0)
        return y @ model[block + name + ".weight"].T + bias

    q, k, v = (project(name, x).reshape(n_tokens, heads, dims).swapaxes(0, 1) for name, heads in
               (("attn_q", n_heads), ("attn_k", n_kv_heads), ("attn_v", n_kv_heads)))
    if model.arch == "gemma3":
        q = rms_norm(q, model[block + "attn_q_norm.weight"], eps)
        k = rms_norm(k, model[block + "attn_k_norm.weight"], eps)
    tables = rope_tables(model, model.is_sliding(layer), n_tokens)
    q, k = (rotate(y, tables, neighbours=model.arch == "llama") for y in (q, k))
    k, v = (np.repeat(y, n_heads // n_kv_heads, axis=0) for y in (k, v))
    distance = np.arange(n_tokens)[:, None] - np.arange(n_tokens)[None, :]
    visible = distance >= 0
    if model.is_sliding(layer):
        visible &= distance < keys["attention.sliding_window"]
    scores = q @ k.swapaxes(1, 2) * keys.get("attention.scale", dims ** -0.5)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return project("attn_output", (weights @ v).swapaxes(0, 1).reshape(n_tokens, -1))


def feed_forward(model, layer, x):
    gate, up, down = (model[f"blk.{layer}.ffn_{name}.weight"] for name in ("gate", "up", "down"))
    y = x @ gate.T
    if model.arch == "gemma3":
        activated = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
    else:
        activated = y / (1 + np.exp(-y))
    return (activated * (x @ up.T)) @ down.T


def forward(model, ids):
    if model.arch in check_qwen.ARCHITECTURES:
        return check_qwen.forward(model, ids)
    eps = model.keys["attention.layer_norm_rms_epsilon"]
    gemma = model.arch == "gemma3"
    x = model["token_embd.weight"][ids]
    if gemma:
        x = x * np.sqrt(model.keys["embedding_length"])
    for layer in range(model.keys["block_count"]):
        block = f"blk.{layer}."
        y = attention(model, layer, rms_norm(x, model[block + "attn_norm.weight"], eps))
        x = x + (rms_norm(y, model[block + "post_attention_norm.weight"], eps) if gemma else y)
        y = feed_forward(model, layer, rms_norm(x, model[block + "ffn_norm.weight"], eps))
        x = x + (rms_norm(y, model[block + "post_ffw_norm.weight"], eps) if gemma else y)
    head = model.tensors.get("output.weight", model["token_embd.weight"])
    return rms_norm(x, model["output_norm.weight"], eps) @ head.T


def check(path: pathlib.Path) -> bool:
    model = Model(path)
    raw = path.with_suffix(".golden").read_bytes()
    n_prompt, n_greedy, n_vocab = np.frombuffer(raw, "<i4", 3)
    ids = np.frombuffer(raw, "<i4", n_prompt + n_greedy, offset=12)
    golden = np.frombuffer(raw, "<f4", n_prompt * n_vocab, offset=12 + ids.nbytes)
    golden = golden.reshape(n_prompt, n_vocab)
    scale = np.abs(golden).max()

    def error(logits):
        return np.abs(logits[:n_prompt] - golden).max() / scale

    logits = forward(model, ids)
    greedy_agrees = (logits[n_prompt - 1 : -1].argmax(1) == ids[n_prompt:]).all()
    tolerance = HYBRID_TOLERANCE if "ssm.state_size" in model.keys else TOLERANCE
    agrees = bool(error(logits) < tolerance and greedy_agrees)
    verdict = "same" if greedy_agrees else "DIFFER"
    print(f"{path.stem}: error {error(logits):.1e}, greedy tokens {verdict}")
    for name in IGNORABLE:
        if name in model.keys or name in model.tensors:
            moved = error(forward(model.ignoring(name), ids))
            print(f"    without {name}: {moved:.1e}")
            agrees &= moved > 1e-3
    return agrees


def main() -> int:
    paths = sorted(pathlib.Path(__file__).parent.glob("*.gguf"))
    results = [check(path) for path in paths]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
