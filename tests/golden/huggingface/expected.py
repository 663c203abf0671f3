#!/usr/bin/env python3
"""What a Hugging Face folder becomes as a GGUF file, by numpy and the gguf package alone.

An independent reading of the conversion: names of tensors and keys come from the gguf package,
transforms from the description of the formats. Prints, for a folder, one line for each key and
tensor, sorted:
  key NAME TYPE VALUE         floats as the hexadecimal bits of f32; long strings and arrays as sha256
  tensor NAME TYPE [SHAPE] SHA256
"""

import hashlib
import json
import pathlib
import re
import struct
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA, "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
    "qwen3": gguf.MODEL_ARCH.QWEN3, "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
    "qwen3_next": gguf.MODEL_ARCH.QWEN3NEXT, "qwen3_5_text": gguf.MODEL_ARCH.QWEN35,
    "qwen3_5_moe_text": gguf.MODEL_ARCH.QWEN35MOE}
ZERO_CENTRED = ("gemma3", "qwen3next", "qwen35", "qwen35moe")
PRE = {"llama": "llama-bpe", "gemma3": "default", "qwen3": "qwen2", "qwen3moe": "qwen2",
       "qwen3next": "qwen2", "qwen35": "qwen35", "qwen35moe": "qwen35"}


def round_to_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """float64 to BF16 values, rounded once to nearest even; only for numbers in BF16's normal range."""
    mantissa, exponent = np.frexp(x.numpy())
    return torch.from_numpy(np.ldexp(np.rint(mantissa * 256) / 256, exponent)).to(torch.float32)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ----- tensors


def language_model(folder: pathlib.Path) -> dict[str, torch.Tensor]:
    """The tensors of the language model, FP8 widened, named from layers.N or the root on."""
    loaded = {}
    for path in sorted(folder.glob("model*.safetensors")):
        loaded |= load_file(path)
    tensors = {}
    for name, tensor in loaded.items():
        if "visual." in name or name.endswith("_scale_inv"):
            continue
        if tensor.dtype == torch.float8_e4m3fn:
            scales = loaded[name + "_scale_inv"].double()
            block = json.loads((folder / "config.json").read_text())["quantization_config"][
                "weight_block_size"][0]
            wide = scales.repeat_interleave(block, 0)[:tensor.shape[0]]
            wide = wide.repeat_interleave(block, 1)[:, :tensor.shape[1]]
            tensor = round_to_bfloat16(tensor.double() * wide).to(torch.bfloat16)
        tensors[re.sub(r"^(model\.language_model\.|model\.)", "", name)] = tensor
    return tensors


def permute_rope_rows(weight: np.ndarray, n_heads: int) -> np.ndarray:
    n_rows, *columns = weight.shape
    halves = weight.reshape(n_heads, 2, n_rows // n_heads // 2, *columns)
    return halves.swapaxes(1, 2).reshape(weight.shape)


def tile_heads(weight: np.ndarray, axis: int, n_key_heads: int, ratio: int, length: int):
    """Value heads of `length` along an axis, from [key head, ratio] to [ratio, key head]."""
    moved = np.moveaxis(weight, axis, 0)
    shape = moved.shape
    heads = moved.reshape(n_key_heads, ratio, length, *shape[1:])
    return np.moveaxis(heads.swapaxes(0, 1).reshape(shape), 0, axis)


class Converter:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        root = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.config = root.get("text_config", root)
        self.root = root
        self.arch = ARCHITECTURES[self.config["model_type"]]
        self.name = gguf.MODEL_ARCH_NAMES[self.arch]
        self.tensors = language_model(folder)
        self.n_layers = self.config["num_hidden_layers"]
        self.n_draft = int("mtp.fc.weight" in self.tensors)
        self.names = gguf.get_tensor_name_map(self.arch, self.n_layers + self.n_draft)

    def experts(self) -> int:
        return self.config.get("num_experts", self.config.get("num_local_experts", 0))

    def stacked(self) -> dict[str, np.ndarray]:
        """Each expert matrix as one tensor, with float32 numbers and its own type remembered."""
        out = {}
        for name, tensor in self.tensors.items():
            found = re.match(r"(.*\.mlp\.experts)\.(\d+)\.(\w+)_proj\.weight$", name)
            if found:
                stem, expert, part = found.groups()
                if int(expert) == 0:
                    all_of_them = [self.tensors[f"{stem}.{e}.{part}_proj.weight"]
                                   for e in range(self.experts())]
                    out[f"{stem}.{part}_proj"] = torch.stack(all_of_them)
            elif name.endswith("experts.gate_up_proj"):
                gate, up = tensor.chunk(2, dim=1)
                stem = name.removesuffix("gate_up_proj")
                out[stem + "gate_proj"], out[stem + "up_proj"] = gate, up
            else:
                out[name] = tensor
        return out

    def split_fused(self, name: str, weight: np.ndarray):
        """qwen3_next: [q | k | v | z] of each key head to all q, k, v and all z."""
        c = self.config
        n_k, d_k = c["linear_num_key_heads"], c["linear_key_head_dim"]
        wide = c["linear_num_value_heads"] // n_k * c["linear_value_head_dim"]
        q, k, v, z = np.split(weight.reshape(n_k, -1, weight.shape[-1]),
                              [d_k, 2 * d_k, 2 * d_k + wide], axis=1)
        flat = [part.reshape(-1, weight.shape[-1]) for part in (q, k, v, z)]
        stem = name.split("linear_attn.")[0] + "linear_attn."
        return {stem + "in_proj_qkv.weight": np.concatenate(flat[:3]),
                stem + "in_proj_z.weight": flat[3]}

    def transform(self, name: str, data: np.ndarray) -> np.ndarray:
        """`data` has the numbers as float32."""
        c = self.config
        if self.name == "llama" and re.search(r"\.[qk]_proj\.", name):
            heads = "num_attention_heads" if ".q_proj." in name else "num_key_value_heads"
            data = permute_rope_rows(data, c[heads])
        is_gdn_norm = name.endswith("linear_attn.norm.weight")
        if self.name in ZERO_CENTRED and name.endswith("norm.weight") and not is_gdn_norm:
            data = data + np.float32(1)
        if ("pre_fc_norm" in name):
            data = data + np.float32(1)
        if name.endswith("A_log"):
            data = (-np.exp(data.astype(np.float64))).astype(np.float32)
        if name.endswith("conv1d.weight"):
            data = data.squeeze(1)
        if name.endswith("shared_expert_gate.weight"):
            data = data.squeeze(0)
        if self.name in ("qwen35", "qwen35moe") and ".linear_attn." in name:
            data = self.tile(name.split(".linear_attn.")[1], data)
        return data

    def tile(self, name: str, data: np.ndarray) -> np.ndarray:
        c = self.config
        n_k, d_v = c["linear_num_key_heads"], c["linear_value_head_dim"]
        ratio = c["linear_num_value_heads"] // n_k
        kept = 2 * n_k * c["linear_key_head_dim"]
        if name in ("in_proj_qkv.weight", "conv1d.weight"):
            return np.concatenate([data[:kept], tile_heads(data[kept:], 0, n_k, ratio, d_v)])
        if name == "in_proj_z.weight":
            return tile_heads(data, 0, n_k, ratio, d_v)
        if name == "out_proj.weight":
            return tile_heads(data, 1, n_k, ratio, d_v)
        if name in ("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias"):
            return tile_heads(data, 0, n_k, ratio, 1)
        return data

    def canonical(self, name: str) -> str:
        if name.startswith("mtp.") and not name.startswith("mtp.layers."):
            head = {"mtp.fc": gguf.MODEL_TENSOR.NEXTN_EH_PROJ,
                    "mtp.pre_fc_norm_embedding": gguf.MODEL_TENSOR.NEXTN_ENORM,
                    "mtp.pre_fc_norm_hidden": gguf.MODEL_TENSOR.NEXTN_HNORM,
                    "mtp.norm": gguf.MODEL_TENSOR.NEXTN_SHARED_HEAD_NORM}
            tensor = head[name.removesuffix(".weight")]
            return gguf.TENSOR_NAMES[tensor].format(bid=self.n_layers) + ".weight"
        name = name.replace("mtp.layers.0.", f"layers.{self.n_layers}.")
        name = name.replace("dt_bias", "dt_proj.bias")
        if re.search(r"experts\.\w+_proj$", name):
            name += ".weight"
        root = "" if name.startswith("lm_head") else "model."
        found = self.names.get_name(root + name, try_suffixes=(".weight", ".bias"))
        assert found, name
        return found

    def all_tensors(self):
        """(canonical name, type, numbers as float32)"""
        for name, tensor in self.stacked().items():
            if name == "lm_head.weight" and self.root.get("tie_word_embeddings"):
                continue
            kind = {torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}[tensor.dtype]
            data = tensor.to(torch.float32).numpy()
            parts = self.split_fused(name, data) if "in_proj_qkvz" in name else {name: data}
            for part, numbers in parts.items():
                numbers = self.transform(part, numbers)
                canonical = self.canonical(part)
                forced = (numbers.ndim == 1 or canonical.endswith("_norm.weight")
                          or not canonical.endswith(".weight")
                          or "ffn_gate_inp" in canonical or "ssm_conv1d" in canonical)
                yield canonical, "F32" if forced else kind, numbers
        if self.config["rope_parameters"].get("rope_type") == "llama3":
            yield "rope_freqs.weight", "F32", self.llama3_divisors()

    def llama3_divisors(self) -> np.ndarray:
        rope = self.config["rope_parameters"]
        low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
        context = rope["original_max_position_embeddings"]
        dims = self.config["head_dim"]
        wavelengths = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, dims, 2) / dims)
        smooth = (context / wavelengths - low) / (high - low)
        blended = 1 / ((1 - smooth) / factor + smooth)
        kept = np.where(wavelengths < context / high, 1.0, blended)
        return np.where(wavelengths > context / low, factor, kept).astype(np.float32)

    # ----- keys

    def write(self, path: pathlib.Path, name: str) -> None:
        c = self.config
        writer = gguf.GGUFWriter(path, self.name)
        writer.add_type("model")
        writer.add_name(name)
        writer.add_block_count(self.n_layers + self.n_draft)
        writer.add_context_length(c["max_position_embeddings"])
        writer.add_embedding_length(c["hidden_size"])
        writer.add_feed_forward_length(c["intermediate_size"])
        writer.add_head_count(c["num_attention_heads"])
        writer.add_head_count_kv(c["num_key_value_heads"])
        writer.add_key_length(c["head_dim"])
        writer.add_value_length(c["head_dim"])
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
        if self.n_draft:
            writer.add_nextn_predict_layers(1)
        self.write_rope(writer)
        if self.experts():
            writer.add_expert_count(self.experts())
            writer.add_expert_used_count(c["num_experts_per_tok"])
            writer.add_expert_feed_forward_length(c["moe_intermediate_size"])
        if "shared_expert_intermediate_size" in c:
            writer.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])
        if "linear_num_key_heads" in c:
            self.write_recurrent(writer)
        if self.name == "llama":
            writer.add_vocab_size(c["vocab_size"])
            writer.add_rope_dimension_count(c["head_dim"])
        if self.name == "gemma3":
            writer.add_sliding_window(c["sliding_window"])
            writer.add_attention_scale(c["query_pre_attn_scalar"] ** -0.5)
        self.write_sampling(writer)
        self.write_vocabulary(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()

    def write_rope(self, writer) -> None:
        rope = self.config["rope_parameters"]
        if self.name == "gemma3":
            writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
            rope = rope["full_attention"]
        writer.add_rope_freq_base(rope["rope_theta"])
        if rope["rope_type"] == "linear":
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(rope["factor"])
        if "partial_rotary_factor" in rope:
            writer.add_rope_dimension_count(
                int(self.config["head_dim"] * rope["partial_rotary_factor"]))
        if "mrope_section" in rope:
            writer.add_rope_dimension_sections([*rope["mrope_section"], 0])

    def write_recurrent(self, writer) -> None:
        c = self.config
        writer.add_ssm_conv_kernel(c["linear_conv_kernel_dim"])
        writer.add_ssm_state_size(c["linear_key_head_dim"])
        writer.add_ssm_group_count(c["linear_num_key_heads"])
        writer.add_ssm_time_step_rank(c["linear_num_value_heads"])
        writer.add_ssm_inner_size(c["linear_num_value_heads"] * c["linear_value_head_dim"])
        is_full = [kind == "full_attention" for kind in c["layer_types"]]
        interval = is_full.index(True) + 1
        if is_full == [(i + 1) % interval == 0 for i in range(self.n_layers)]:
            writer.add_full_attention_interval(interval)
        else:
            flags = [not full for full in is_full] + [False] * self.n_draft
            writer.add_array(f"{self.name}.attention.recurrent_layers", flags)

    def write_sampling(self, writer) -> None:
        generation = json.loads((self.folder / "generation_config.json").read_text())
        if generation.get("do_sample"):
            writer.add_sampling_temp(generation["temperature"])
            writer.add_sampling_top_k(generation["top_k"])
            writer.add_sampling_top_p(generation["top_p"])

    def write_vocabulary(self, writer) -> None:
        document = json.loads((self.folder / "tokenizer.json").read_text(encoding="utf-8"))
        config = json.loads((self.folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        n_rows = self.config["vocab_size"]
        texts = [f"[PAD{i}]" for i in range(n_rows)]
        kinds = [int(gguf.TokenType.UNUSED)] * n_rows
        is_spm = self.name == "gemma3"
        for text, i in document["model"]["vocab"].items():
            is_byte = is_spm and re.fullmatch(r"<0x[0-9A-F]{2}>", text)
            texts[i] = text
            kinds[i] = int(gguf.TokenType.UNKNOWN if text == "<unk>" else
                           gguf.TokenType.BYTE if is_byte else gguf.TokenType.NORMAL)
        added = [(t["id"], t) for t in document["added_tokens"]]
        added += [(int(i), t) for i, t in config.get("added_tokens_decoder", {}).items()]
        for i, token in added:
            texts[i] = token["content"]
            if kinds[i] != gguf.TokenType.UNKNOWN:
                kinds[i] = int(gguf.TokenType.CONTROL if token["special"] else
                               gguf.TokenType.USER_DEFINED)
        writer.add_tokenizer_model("llama" if is_spm else "gpt2")
        writer.add_tokenizer_pre(PRE[self.name])
        writer.add_token_list(texts)
        writer.add_token_types(kinds)
        merges = [m.split(" ") if isinstance(m, str) else m for m in document["model"]["merges"]]
        if is_spm:
            order = list(dict.fromkeys(left + right for left, right in merges))
            rank = {text: -float(i + 1) for i, text in enumerate(order)}
            writer.add_token_scores([rank.get(text, 0.0) for text in texts])
            writer.add_add_space_prefix(False)
        else:
            writer.add_token_merges([" ".join(m) for m in merges])
        self.write_special(writer, texts, config)
        template = self.folder / "chat_template.jinja"
        if template.exists():
            writer.add_chat_template(template.read_text(encoding="utf-8"))
        elif "chat_template" in config:
            writer.add_chat_template(config["chat_template"])

    def write_special(self, writer, texts, config) -> None:
        def id_of(role):
            token = config.get(role)
            return None if token is None else texts.index(
                token if isinstance(token, str) else token["content"])

        has_bos = self.name in ("llama", "gemma3")
        writer.add_add_bos_token(has_bos)
        writer.add_add_eos_token(False)
        if has_bos:
            writer.add_bos_token_id(id_of("bos_token"))
        writer.add_eos_token_id(id_of("eos_token"))
        if "pad_token" in config:
            writer.add_pad_token_id(id_of("pad_token"))
        if "unk_token" in config:
            writer.add_unk_token_id(id_of("unk_token"))


# ----- the list


def value_text(field: gguf.ReaderField) -> str:
    kind = field.types[0]
    if kind == gguf.GGUFValueType.ARRAY:
        element = field.types[1]
        values = field.contents()
        if element == gguf.GGUFValueType.STRING:
            data = b"".join(struct.pack("<Q", len(v.encode())) + v.encode() for v in values)
        else:
            code = {"INT32": "i", "FLOAT32": "f", "BOOL": "?"}[element.name]
            data = struct.pack(f"<{len(values)}{code}", *values)
        return f"array {len(values)} {element.name} {sha256(data)}"
    value = field.contents()
    if kind == gguf.GGUFValueType.STRING:
        raw = value.encode("utf-8")
        is_short = len(raw) <= 40 and all(0x20 <= b < 0x7f for b in raw)
        return "string " + (value if is_short else sha256(raw))
    if kind == gguf.GGUFValueType.FLOAT32:
        return f"f32 {struct.pack('>f', value).hex()}"
    if kind == gguf.GGUFValueType.BOOL:
        return f"bool {str(bool(value)).lower()}"
    return f"{kind.name.replace('UINT', 'u').replace('INT', 'i')} {value}"


def stored(kind: str, data: np.ndarray) -> bytes:
    if kind == "F32":
        return np.ascontiguousarray(data, dtype="<f4").tobytes()
    dtype = torch.bfloat16 if kind == "BF16" else torch.float16
    narrow = torch.from_numpy(np.ascontiguousarray(data)).to(dtype)
    assert (narrow.to(torch.float32).numpy() == data).all()
    return narrow.view(torch.int16).numpy().tobytes()


def describe(folder: pathlib.Path, name: str) -> str:
    converter = Converter(folder)
    path = folder / "expected.gguf"
    converter.write(path, name)
    fields = gguf.GGUFReader(path).fields
    path.unlink()
    lines = [f"key {key} {value_text(field)}" for key, field in fields.items()
             if not key.startswith("GGUF.")]
    for tensor, kind, data in converter.all_tensors():
        shape = ", ".join(map(str, data.shape))
        lines.append(f"tensor {tensor} {kind} [{shape}] {sha256(stored(kind, data))}")
    return "".join(line + "\n" for line in sorted(lines))


if __name__ == "__main__":
    print(describe(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1]).name), end="")
