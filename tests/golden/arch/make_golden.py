#!/usr/bin/env python3
"""Makes the architecture golden data: tiny random models and what transformers computes with them.

For every entry of VARIANTS it writes NAME.gguf (F32 weights; names, keys and transforms as
llama.cpp's converter writes them) and NAME.golden (layout in PROVENANCE.md).
Needs torch, transformers and gguf; see PROVENANCE.md for versions. check_golden.py re-derives the
logits from the GGUF files with numpy alone.
"""

import argparse
import dataclasses
import math
import pathlib
import struct

import gguf
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

import qwen_models

N_PROMPT = 24
N_GREEDY = 64
MIN_MARGIN = 2e-3  # smallest lead of a greedy token over the second, relative to max |logit|
MAX_ROUNDING = 1.5e-6  # largest float32 - float64 difference of a logit, relative to max |logit|
MAX_LONG_ROUNDING = 5e-6  # the same for recurrent layers and experts: longer chains of roundings
MIN_DISTINCT = 24  # of the greedy tokens: a model that repeats itself tests little
PIECES = ["▁", "t", "h", "e", "a", "▁t", "he", "▁the"]
CONTROL = {"llama": ["<unk>", "<s>", "</s>"], "gemma3": ["<pad>", "<eos>", "<bos>", "<unk>"]}
BOS = {"llama": 1, "gemma3": 2}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One model: `config` goes to transformers, `keys` are metadata beyond what every file has."""

    arch: str
    config: dict
    keys: dict = dataclasses.field(default_factory=dict)
    write_head_dim: bool = True  # older converters leave key_length and value_length out
    layout: qwen_models.Layout | None = None  # of the files of the Qwen family

    @property
    def max_rounding(self) -> float:
        return MAX_LONG_ROUNDING if self.arch in qwen_models.LONG else MAX_ROUNDING

    @property
    def n_tokens(self) -> int:
        """Of the vocabulary; the embedding may have more rows."""
        return len(control_tokens(self.arch)) + 256 + len(PIECES)


def control_tokens(arch: str) -> list[str]:
    return CONTROL.get(arch, CONTROL["llama"])


def bos_token(arch: str) -> int:
    return BOS.get(arch, BOS["llama"])


def llama(rope: dict | None = None, **changes) -> dict:
    return dict(
        vocab_size=len(CONTROL["llama"]) + 256 + len(PIECES), hidden_size=64, intermediate_size=48,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0} | (rope or {}),
    ) | changes


def gemma3(rope_full: dict, local_base: float, **changes) -> dict:
    return dict(
        vocab_size=len(CONTROL["gemma3"]) + 256 + len(PIECES), hidden_size=32, intermediate_size=48,
        num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
        max_position_embeddings=512, rms_norm_eps=1e-6, tie_word_embeddings=True,
        query_pre_attn_scalar=32, sliding_window=8, sliding_window_pattern=6,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1e6} | rope_full,
            "sliding_attention": {"rope_type": "default", "rope_theta": local_base},
        },
    ) | changes


YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0}
YARN_KEYS = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}
YARN_ATTENTION = 0.1 * math.log(4.0) + 1.0  # transformers' default factor of cos and sin

VARIANTS = {
    "llama": Variant("llama", llama(tie_word_embeddings=False), write_head_dim=False),
    "llama-tied": Variant("llama", llama(head_dim=24)),  # head_dim is not hidden / n_heads
    "llama-bias": Variant("llama", llama(attention_bias=True, num_key_value_heads=1)),
    "llama-linear": Variant(
        "llama", llama({"rope_type": "linear", "factor": 4.0}),
        {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    "llama-llama3": Variant(  # the scaling travels in rope_freqs.weight only
        "llama", llama({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                        "high_freq_factor": 4.0, "original_max_position_embeddings": 64})),
    "llama-yarn": Variant(
        "llama", llama(YARN | {"original_max_position_embeddings": 4096},
                       max_position_embeddings=16384),
        YARN_KEYS | {"rope.scaling.original_context_length": 4096}),
    "llama-yarn-keys": Variant(
        "llama", llama(YARN | {"original_max_position_embeddings": 64, "beta_fast": 4.0,
                               "beta_slow": 0.5, "attention_factor": 0.75 * YARN_ATTENTION},
                       max_position_embeddings=256),
        YARN_KEYS | {"rope.scaling.original_context_length": 64,
                     "rope.scaling.yarn_beta_fast": 4.0, "rope.scaling.yarn_beta_slow": 0.5,
                     "rope.scaling.attn_factor": 0.75}),
    "gemma3": Variant(
        "gemma3", gemma3({"rope_type": "linear", "factor": 8.0}, local_base=1e4),
        {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
    "gemma3-keys": Variant(
        "gemma3", gemma3({}, local_base=500.0, num_hidden_layers=4, sliding_window=11,
                         sliding_window_pattern=2, query_pre_attn_scalar=20),
        {"rope.freq_base_swa": 500.0, "attention.sliding_window_pattern": 2,
         "attention.scale": 20 ** -0.5}),
} | {name: Variant(arch, config, layout=layout)
     for name, (arch, config, layout) in qwen_models.VARIANTS.items()}


class InDouble(TorchFunctionMode):
    """Runs model code that says float32 in float64: norms, softmax and rotary angles included."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        func = torch.Tensor.double if func is torch.Tensor.float else func
        return func(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def make_model(variant: Variant):
    if variant.layout is not None:
        return qwen_models.make_model(variant.arch, variant.config)
    model_class, config_class = {"llama": (LlamaForCausalLM, LlamaConfig),
                                 "gemma3": (Gemma3ForCausalLM, Gemma3TextConfig)}[variant.arch]
    config = config_class(**variant.config, attn_implementation="eager")
    return model_class(config).eval()


def randomise(variant: Variant, model, seed: int) -> None:
    """Wide weights: attention is peaked, the logits are not flat, nothing is left at 0 or 1.

    The last norm has both signs: with tied embeddings each token would else predict itself.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        is_zero_centred = (variant.arch == "gemma3"  # stores norms minus 1
                           or qwen_models.is_zero_centred(variant.arch, name))
        one = 0.0 if is_zero_centred else 1.0
        own = qwen_models.random_value(name, weight.shape, noise)
        if own is not None:
            value = own
        elif "embed_tokens" in name or "lm_head" in name:
            value = 0.3 * noise
        elif name.endswith(".bias"):
            value = 0.3 * noise
        elif name == "model.norm.weight":
            value = one - 1.0 + noise
        elif weight.dim() == 1:
            value = one + 0.2 * noise + (0.5 if "q_norm" in name or "k_norm" in name else 0.0)
        else:
            value = 1.1 * noise / math.sqrt(weight.shape[1])
        weight.data.copy_(value)


def in_double(variant: Variant, model):
    """The same weights in a model that is float64 throughout. Call inside InDouble()."""
    torch.set_default_dtype(torch.float64)
    wide = make_model(variant)
    wide.load_state_dict(model.state_dict())
    torch.set_default_dtype(torch.float32)
    return wide


@torch.no_grad()
def all_logits(model, ids: list[int]) -> np.ndarray:
    return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def continue_greedily(model, prompt: list[int]) -> list[int]:
    ids = list(prompt)
    for _ in range(N_GREEDY):
        ids.append(int(all_logits(model, ids)[-1].argmax()))
    return ids


def smallest_margin(logits: np.ndarray) -> float:
    top = np.sort(logits[N_PROMPT - 1 : -1], axis=1)
    return float(((top[:, -1] - top[:, -2]) / np.abs(top).max()).min())


@torch.no_grad()
def hidden_states(model, ids: list[int]) -> np.ndarray:
    """[layers, ids, hidden]: what each layer hands to the next."""
    states = model(torch.tensor([ids]), use_cache=False, output_hidden_states=True).hidden_states
    return np.stack([state[0].numpy() for state in states[1:-1]])


@dataclasses.dataclass
class Golden:
    model: torch.nn.Module
    seed: int
    ids: list[int]  # prompt, then greedy tokens
    logits: np.ndarray  # float64, one row for each id
    hidden: np.ndarray | None  # float64 hidden states of the prompt, for the Qwen family
    rounding: float  # what float32 loses, relative to max |logit|


def compute(variant: Variant, seed: int) -> Golden | None:
    """None when the greedy tokens repeat themselves, contain a control token or come near a tie."""
    n_control = len(control_tokens(variant.arch))
    model = make_model(variant)
    randomise(variant, model, seed)
    rng = np.random.default_rng(seed)
    rest = rng.integers(n_control, variant.n_tokens, N_PROMPT - 1)
    prompt = [bos_token(variant.arch), *rest.tolist()]
    ids = continue_greedily(model, prompt)
    greedy = ids[N_PROMPT:]
    if min(greedy) < n_control or max(greedy) >= variant.n_tokens or len(set(greedy)) < MIN_DISTINCT:
        return None
    narrow = all_logits(model, ids)
    with InDouble():
        wide_model = in_double(variant, model)
        wide = all_logits(wide_model, ids)
    assert wide.dtype == np.float64
    rounding = float(np.abs(narrow - wide).max() / np.abs(wide).max())
    if smallest_margin(wide) < MIN_MARGIN or rounding > variant.max_rounding:
        return None
    assert (wide[N_PROMPT - 1 : -1].argmax(axis=1) == greedy).all(), "float64 picks other tokens"
    hidden = None
    if variant.layout is not None:
        with InDouble():
            hidden = hidden_states(wide_model, ids[:N_PROMPT])
    return Golden(model, seed, ids, wide, hidden, rounding)


def permute_rope_rows(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """Rows of each head from halves (j, j + D/2) to neighbours (2j, 2j + 1)."""
    n_rows, *columns = weight.shape
    halves = weight.reshape(n_heads, 2, n_rows // n_heads // 2, *columns)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def mtp_head(variant: Variant):
    if variant.layout is None or not variant.layout.prediction_block:
        return None
    return qwen_models.MtpHead(variant.arch, variant.config,
                               lambda model: randomise(variant, model, seed=7))


@torch.no_grad()
def mtp_logits(variant: Variant, model, ids: list[int]) -> np.ndarray:
    """float64 [ids - 1, vocab]."""
    mtp = mtp_head(variant)
    with InDouble():
        one = dataclasses.replace(variant, config=mtp.config)
        return mtp.logits(in_double(variant, model), in_double(one, mtp.model), ids)


def gguf_tensors(variant: Variant, model):
    """(name, array) as the converter writes them."""
    if variant.layout is not None:
        yield from qwen_models.tensors(variant.arch, model, variant.layout, mtp_head(variant))
        return
    config = model.config
    arch = {"llama": gguf.MODEL_ARCH.LLAMA, "gemma3": gguf.MODEL_ARCH.GEMMA3}[variant.arch]
    names = gguf.get_tensor_name_map(arch, config.num_hidden_layers)
    if variant.config.get("rope_parameters", {}).get("rope_type") == "llama3":
        yield "rope_freqs.weight", llama3_divisors(config)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        data = weight.numpy()
        if variant.arch == "llama" and ".q_proj." in name:
            data = permute_rope_rows(data, config.num_attention_heads)
        if variant.arch == "llama" and ".k_proj." in name:
            data = permute_rope_rows(data, config.num_key_value_heads)
        if variant.arch == "gemma3" and name.endswith("norm.weight"):
            data = data + np.float32(1)
        yield names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(data)


def llama3_divisors(config) -> np.ndarray:
    rope = config.rope_parameters
    context = rope["original_max_position_embeddings"]
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    exponents = np.arange(0, config.head_dim, 2) / config.head_dim
    wavelengths = 2 * np.pi * rope["rope_theta"] ** exponents
    smooth = (context / wavelengths - low) / (high - low)
    blended = 1 / ((1 - smooth) / factor + smooth)
    kept = np.where(wavelengths < context / high, 1.0, blended)
    return np.where(wavelengths > context / low, factor, kept).astype(np.float32)


def write_gguf(path: pathlib.Path, name: str, variant: Variant, model) -> None:
    config = model.config
    writer = gguf.GGUFWriter(path, variant.arch)
    writer.add_type("model")
    writer.add_name(f"Hearth golden {name}")
    has_prediction = variant.layout is not None and variant.layout.prediction_block
    writer.add_block_count(config.num_hidden_layers + has_prediction)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    if variant.arch != "qwen35moe":
        writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if variant.layout is not None:
        qwen_models.add_keys(writer, variant.arch, config, variant.layout)
    elif variant.write_head_dim:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if variant.arch == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(config.head_dim)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    elif variant.arch == "gemma3":
        writer.add_rope_freq_base(config.rope_parameters["full_attention"]["rope_theta"])
        writer.add_sliding_window(config.sliding_window)
    add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}
    for key, value in variant.keys.items():
        add[type(value)](f"{variant.arch}.{key}", value)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_vocabulary(writer, variant.arch)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor_name, data in gguf_tensors(variant, model):
        writer.add_tensor(tensor_name, np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_vocabulary(writer: gguf.GGUFWriter, arch: str) -> None:
    """A SentencePiece vocabulary: control tokens, every byte, pieces that merge into "▁the"."""
    control = control_tokens(arch)
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN if t == "<unk>" else gguf.TokenType.CONTROL for t in control]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(PIECES)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(control + bytes_ + PIECES)
    writer.add_token_scores([0.0] * (len(control) + 256) + [-float(i) for i in range(len(PIECES))])
    writer.add_token_types(kinds)
    if arch == "gemma3":
        writer.add_pad_token_id(control.index("<pad>"))
    writer.add_bos_token_id(bos_token(arch))
    writer.add_eos_token_id(control.index("<eos>" if arch == "gemma3" else "</s>"))
    writer.add_unk_token_id(control.index("<unk>"))
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(arch != "gemma3")


def make(name: str, folder: pathlib.Path) -> None:
    variant = VARIANTS[name]
    golden = next(filter(None, (compute(variant, seed) for seed in range(1, 1000))))
    write_gguf(folder / f"{name}.gguf", name, variant, golden.model)
    with open(folder / f"{name}.golden", "wb") as out:
        out.write(struct.pack("<3i", N_PROMPT, N_GREEDY, golden.logits.shape[1]))
        out.write(np.array(golden.ids, dtype="<i4").tobytes())
        out.write(golden.logits[:N_PROMPT].astype("<f4").tobytes())
        if golden.hidden is not None:
            out.write(struct.pack("<2i", golden.hidden.shape[0], golden.hidden.shape[2]))
            out.write(golden.hidden.astype("<f4").tobytes())
    if mtp_head(variant) is not None:
        prompt = golden.ids[:N_PROMPT]
        mtp_logits(variant, golden.model, prompt).astype("<f4").tofile(folder / f"{name}.mtp")
    n_distinct = len(set(golden.ids[N_PROMPT:]))
    print(f"| {name} | {golden.seed} | {np.abs(golden.logits).max():.2f} | {golden.rounding:.1e} "
          f"| {smallest_margin(golden.logits):.1e} | {n_distinct} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(VARIANTS), help="default: all variants")
    torch.set_num_threads(1)
    for name in parser.parse_args().names:
        make(name, pathlib.Path(__file__).parent)


if __name__ == "__main__":
    main()
