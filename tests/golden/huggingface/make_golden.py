#!/usr/bin/env python3
"""Makes the Hugging Face golden data: tiny folders, and what others make of them.

For every entry of FOLDERS it writes a folder NAME as transformers saves a model, and in it
  expected.txt     metadata and tensors of the GGUF file that the folder becomes, see expected.py
  logits.golden    what transformers computes, laid out as tests/golden/arch/PROVENANCE.md says
  tokens.golden    the ids of the texts of tests/golden/tokenizers/texts.inp, by `tokenizers`
  decomposed.golden  the same of decomposed.inp, texts that are not in NFC
Needs torch, transformers, tokenizers, sentencepiece, gguf; see PROVENANCE.md for versions.
"""

import argparse
import dataclasses
import io
import json
import math
import pathlib
import re
import shutil
import struct
import sys
import unicodedata

import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.overrides import TorchFunctionMode

import expected

HERE = pathlib.Path(__file__).parent
TEXTS = HERE.parent / "tokenizers" / "texts.inp"
END_OF_TEXT = "\n__ggml_vocab_test__\n"
N_PROMPT = 12
N_MERGES = 60
N_ROWS = 352  # of every embedding table: some more than there are tokens
CHAT_TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


# ----- tokenizers


def texts() -> list[str]:
    """The texts of the tokenizer golden data."""
    return TEXTS.read_bytes().decode().split(END_OF_TEXT)[:-1]


QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
          r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level(pattern: str, special: list[str], user_defined: list[str]) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + N_MERGES, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(), trainer)
    tokenizer.add_special_tokens([tokenizers.AddedToken(t, special=True) for t in special])
    tokenizer.add_tokens([tokenizers.AddedToken(t, special=False) for t in user_defined])
    return tokenizer


def qwen(pattern: str) -> tokenizers.Tokenizer:
    tokenizer = byte_level(pattern, CHATML, ["<think>", "</think>"])
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def llama3() -> tokenizers.Tokenizer:
    tokenizer = byte_level(LLAMA3, ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"], [])
    tokenizer.model.ignore_merges = True
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                      pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                                      special_tokens=[("<|begin_of_text|>", bos)])])
    return tokenizer


def gemma() -> tokenizers.Tokenizer:
    """A SentencePiece model as transformers converts one: every pair that makes a piece is a merge."""
    control = ["<pad>", "<eos>", "<bos>", "<unk>"]
    # Few characters, so that most of the vocabulary is merges; the others are spelled in bytes.
    lines_to_learn = re.sub(r"[^a-z \n]", "", "\n".join(texts())).splitlines()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines_to_learn), model_writer=model, model_type="bpe",
        vocab_size=N_ROWS - 4, byte_fallback=True, add_dummy_prefix=False,
        remove_extra_whitespaces=False, normalization_rule_name="identity", pad_id=0, eos_id=1,
        bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
        hard_vocab_limit=False, max_sentence_length=10**6, num_threads=1,
        minloglevel=2)
    reader = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [reader.id_to_piece(i) for i in range(reader.get_piece_size())]
    assert pieces[:4] == control
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    merges = [(piece[:cut], piece[cut:]) for piece in pieces[260:] for cut in range(1, len(piece))
              if piece[:cut] in vocabulary and piece[cut:] in vocabulary]
    tokenizer = tokenizers.Tokenizer(models.BPE(
        vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse()])
    tokenizer.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False)
                                  for t in [*control, "<end_of_turn>"]])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 2)])
    return tokenizer


def save_tokenizer(folder: pathlib.Path, tokenizer: tokenizers.Tokenizer, config: dict,
                   string_merges: bool) -> None:
    document = json.loads(tokenizer.to_str())
    if string_merges:  # as files before 2024 have them
        document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    write_json(folder / "tokenizer.json", document, None)
    write_json(folder / "tokenizer_config.json", config)


def decomposed_texts() -> list[str]:
    """Texts that are not in NFC: those above in other forms, and special tokens amid marks."""
    letters = "Phở tiếng Việt, naïve Ångström, 한국어 각, ガギグ, ﬁ Ω Å क़ ℌ"
    forms = [unicodedata.normalize(form, letters) for form in ("NFD", "NFKD")]
    marks = "e\u0323\u0302\u0301e\u0301\u0302\u0323 \u0301 5\u0301\n\u0301\u0344\u1100\uac01\u11a8"
    special = "a<|im_end|>\u030ab<think>\u0301</think>e\u0301"
    return [*forms, letters, marks, special] + [unicodedata.normalize("NFD", t) for t in texts()]


def save_tokens(path: pathlib.Path, tokenizer: tokenizers.Tokenizer, of: list[str]) -> None:
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in of]
    lines = [" ".join(map(str, line)) for line in ids]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def write_json(path: pathlib.Path, document: dict, indent: int | None = 1) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=indent,
                      separators=None if indent else (",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


# ----- models


@dataclasses.dataclass(frozen=True)
class Folder:
    model: str  # the classes of transformers, without "ForCausalLM" and "Config"
    config: dict
    tokenizer: str = "qwen35"
    multimodal: bool = False
    fused_experts: bool = False
    draft: str = ""  # "dense", "fused" or "unfused": with a multi-token-prediction head
    float32: tuple[str, ...] = ()  # tensors that stay F32
    shards: bool = False
    float8_block: int = 0


DECODER = dict(
    vocab_size=N_ROWS, hidden_size=32, intermediate_size=48, num_hidden_layers=4,
    num_attention_heads=2, num_key_value_heads=1, head_dim=16, max_position_embeddings=512,
    rms_norm_eps=1e-6)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
PARTIAL_ROPE = ROPE | {"partial_rotary_factor": 0.5}
SECTIONS = PARTIAL_ROPE | {"mrope_interleaved": True, "mrope_section": [2, 1, 1]}
RECURRENT = dict(linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16,
                 linear_num_key_heads=2, linear_num_value_heads=4)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
SHARED = dict(shared_expert_intermediate_size=24)
KEPT = ("A_log", "linear_attn.norm.weight")

FOLDERS = {
    "llama": Folder(
        "Llama", DECODER | dict(
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=12,
            tie_word_embeddings=False,
            rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0,
                             "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 64}),
        tokenizer="llama3", shards=True),
    "llama-fp8": Folder(
        "Llama", DECODER | dict(num_hidden_layers=1, hidden_size=40, head_dim=20,
                                tie_word_embeddings=False, rope_parameters=ROPE),
        tokenizer="llama3", float8_block=32),
    "gemma3": Folder(
        "Gemma3", DECODER | dict(
            num_hidden_layers=6, intermediate_size=32, tie_word_embeddings=True,
            query_pre_attn_scalar=20, sliding_window=5,
            rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1e6,
                                                "factor": 8.0},
                             "sliding_attention": ROPE | {"rope_theta": 500.0}}),
        tokenizer="gemma"),
    "qwen3": Folder("Qwen3", DECODER | dict(num_hidden_layers=2, tie_word_embeddings=True,
                                            rope_parameters=ROPE), tokenizer="qwen2"),
    "qwen3moe": Folder(
        "Qwen3Moe", DECODER | EXPERTS | dict(num_hidden_layers=2, norm_topk_prob=True,
                                             tie_word_embeddings=False, rope_parameters=ROPE),
        tokenizer="qwen2"),
    "qwen3next": Folder(
        "Qwen3Next", DECODER | RECURRENT | EXPERTS | SHARED | dict(
            num_hidden_layers=2, layer_types=["linear_attention", "full_attention"],
            tie_word_embeddings=False, rope_parameters=PARTIAL_ROPE),
        tokenizer="qwen2", draft="unfused", float32=KEPT),
    # As many value heads as key heads: nothing is permuted. Language model inside a multimodal one.
    "qwen35-r1-tied": Folder(
        "Qwen3_5", DECODER | RECURRENT | dict(linear_num_value_heads=2, tie_word_embeddings=True,
                                              rope_parameters=SECTIONS),
        multimodal=True, float32=KEPT),
    "qwen35-r2-mtp": Folder(
        "Qwen3_5", DECODER | RECURRENT | dict(
            num_hidden_layers=3,
            layer_types=["linear_attention", "linear_attention", "full_attention"],
            tie_word_embeddings=False, rope_parameters=SECTIONS),
        draft="dense", float32=KEPT),
    # Layers that follow no interval.
    "qwen35moe-unfused": Folder(
        "Qwen3_5Moe", DECODER | RECURRENT | EXPERTS | SHARED | dict(
            linear_num_value_heads=6, tie_word_embeddings=False, rope_parameters=SECTIONS,
            num_hidden_layers=3,
            layer_types=["full_attention", "linear_attention", "linear_attention"]),
        float32=KEPT),
    "qwen35moe-fused-mtp": Folder(
        "Qwen3_5Moe", DECODER | RECURRENT | EXPERTS | SHARED | dict(
            num_hidden_layers=2, layer_types=["linear_attention", "full_attention"],
            tie_word_embeddings=False, rope_parameters=SECTIONS),
        multimodal=True, fused_experts=True, draft="unfused"),
}

VISION = dict(depth=1, hidden_size=8, intermediate_size=8, num_heads=1, out_hidden_size=32,
              num_position_embeddings=4, patch_size=2)
TOKENIZERS = {"qwen2": lambda: qwen(QWEN2), "qwen35": lambda: qwen(QWEN35), "llama3": llama3,
              "gemma": gemma}
TOKENIZER_CONFIGS = {
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": {"content": "<|eot_id|>"}},
    "gemma": {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>",
              "unk_token": "<unk>", "add_bos_token": True},
    "qwen2": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False,
              "chat_template": CHAT_TEMPLATE},
    "qwen35": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False},
}


class InDouble(TorchFunctionMode):
    """Runs model code that says float32 in float64: norms, softmax and rotary angles included."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(x):
            return torch.float64 if x is torch.float32 else x

        func = torch.Tensor.double if func is torch.Tensor.float else func
        return func(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})


def make_model(folder: Folder):
    text_class = getattr(transformers, folder.model + "TextConfig", None)
    text = (text_class or getattr(transformers, folder.model + "Config"))(
        **folder.config, attn_implementation="eager",
        experts_implementation="eager")
    if not folder.multimodal:
        return getattr(transformers, folder.model + "ForCausalLM")(text).eval()
    config = getattr(transformers, folder.model + "Config")(
        text_config=text.to_dict(), vision_config=VISION,
        tie_word_embeddings=folder.config["tie_word_embeddings"], attn_implementation="eager",
        experts_implementation="eager")
    return getattr(transformers, folder.model + "ForConditionalGeneration")(config).eval()


PLAIN_NORMS = ("Llama", "Qwen3", "Qwen3Moe")  # the others store the distance from one


def random_weight(spec: Folder, name: str, shape, rng) -> torch.Tensor:
    """Values that BF16 holds, so that nothing is lost when they are stored."""
    noise = rng.standard_normal(shape)
    if name.endswith("A_log"):
        noise = np.log(rng.uniform(1, 16, shape))
    elif len(shape) == 1:
        is_plain = spec.model in PLAIN_NORMS or name.endswith("linear_attn.norm.weight")
        noise = 0.3 * noise + (1.0 if is_plain and name.endswith("norm.weight") else 0.0)
    elif "embed_tokens" not in name:
        noise = 1.1 * noise / math.sqrt(shape[-1])
    return torch.from_numpy(noise).to(torch.bfloat16).to(torch.float32)


@torch.no_grad()
def randomise(spec: Folder, model, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name, weight in model.named_parameters():
        weight.copy_(random_weight(spec, name, tuple(weight.shape), rng))


@torch.no_grad()
def logits_in_double(folder: Folder, model, prompt: list[int]) -> np.ndarray:
    with InDouble():
        torch.set_default_dtype(torch.float64)
        wide = make_model(folder)
        wide.load_state_dict(model.state_dict())
        wide = wide.double()
        torch.set_default_dtype(torch.float32)
        logits = wide(torch.tensor([prompt]), use_cache=False).logits[0]
    assert logits.dtype == torch.float64
    return logits.numpy()


def save_golden(path: pathlib.Path, prompt: list[int], logits: np.ndarray) -> None:
    with open(path, "wb") as out:
        out.write(struct.pack("<3i", len(prompt), 0, logits.shape[1]))
        out.write(np.array(prompt, dtype="<i4").tobytes())
        out.write(logits.astype("<f4").tobytes())


def fuse_experts(tensors: dict, n_experts: int) -> dict:
    """From a tensor for each expert to one for all, as the released files have the trunk."""
    fused = {name: t for name, t in tensors.items() if ".experts." not in name}
    stems = {name.split(".experts.")[0] for name in tensors if ".experts." in name}
    for stem in sorted(stems):
        part = {p: torch.stack([tensors[f"{stem}.experts.{e}.{p}_proj.weight"]
                                for e in range(n_experts)]) for p in ("gate", "up", "down")}
        fused[f"{stem}.experts.gate_up_proj"] = torch.cat([part["gate"], part["up"]], dim=1)
        fused[f"{stem}.experts.down_proj"] = part["down"]
    return fused


def draft_head(tensors: dict, folder: Folder, seed: int) -> dict:
    """A head whose layer has the shapes of the last full attention layer."""
    rng = np.random.default_rng(seed)
    width = folder.config["hidden_size"]
    layer = next(name.split("layers.")[1].split(".")[0] for name in tensors
                 if ".self_attn.q_proj." in name)
    shapes = {f"mtp.layers.0.{name.split(f'.layers.{layer}.')[1]}": tuple(tensor.shape)
              for name, tensor in tensors.items() if f".layers.{layer}." in name}
    shapes |= {"mtp.fc.weight": (width, 2 * width), "mtp.norm.weight": (width,),
               "mtp.pre_fc_norm_embedding.weight": (width,),
               "mtp.pre_fc_norm_hidden.weight": (width,)}
    return {name: random_weight(folder, name, shape, rng).to(torch.bfloat16)
            for name, shape in shapes.items()}


@torch.no_grad()
def to_float8(model, block: int) -> dict:
    """Replaces the matrices of layers by what FP8 blocks hold of them; returns what is stored."""
    stored = {}
    for name, weight in model.named_parameters():
        if weight.dim() != 2 or ".layers." not in name:
            continue
        rows, columns = weight.shape
        codes = torch.empty(rows, columns, dtype=torch.float8_e4m3fn)
        scales = torch.empty(-(-rows // block), -(-columns // block))
        for r in range(scales.shape[0]):
            for c in range(scales.shape[1]):
                at = np.s_[r * block:(r + 1) * block, c * block:(c + 1) * block]
                scales[r, c] = weight[at].abs().max() / 448
                codes[at] = (weight[at] / scales[r, c]).to(torch.float8_e4m3fn)
                exact = codes[at].double() * scales[r, c].double()
                weight[at] = expected.round_to_bfloat16(exact)
        stored[name] = codes
        stored[name + "_scale_inv"] = scales
    return stored


def make(name: str, seed: int) -> None:
    spec = FOLDERS[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model = make_model(spec)
    randomise(spec, model, seed)
    float8 = to_float8(model, spec.float8_block) if spec.float8_block else {}
    prompt = np.random.default_rng(seed).integers(0, 300, N_PROMPT).tolist()
    logits = logits_in_double(spec, model, prompt)
    model.to(torch.bfloat16).save_pretrained(folder)
    save_golden(folder / "logits.golden", prompt, logits)

    weights = folder / "model.safetensors"
    tensors = load_file(weights) | float8
    if spec.draft:
        tensors |= draft_head(tensors, spec, seed)
    if spec.fused_experts:
        trunk = {k: t for k, t in tensors.items() if not k.startswith("mtp.")}
        rest = {k: t for k, t in tensors.items() if k.startswith("mtp.")}
        tensors = fuse_experts(trunk, spec.config["num_experts"]) | rest
    for key in tensors:
        if key.endswith(spec.float32):
            tensors[key] = tensors[key].to(torch.float32)
    if spec.shards:
        save_shards(folder, tensors)
        weights.unlink()
    else:
        save_file(tensors, weights, metadata={"format": "pt"})
    tokenizer = TOKENIZERS[spec.tokenizer]()
    finish_configs(folder, spec, tokenizer)
    if name == next(first for first, other in FOLDERS.items() if other.tokenizer == spec.tokenizer):
        save_tokens(folder / "tokens.golden", tokenizer, texts())
        save_tokens(folder / "decomposed.golden", tokenizer, decomposed_texts())
    (folder / "expected.txt").write_text(expected.describe(folder, name), encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"| {name} | {seed} | {np.abs(logits).max():.2f} | {size} |", flush=True)


def save_shards(folder: pathlib.Path, tensors: dict) -> None:
    names = sorted(tensors)
    index = {"metadata": {"total_size": 0}, "weight_map": {}}
    for number, part in enumerate((names[::2], names[1::2]), start=1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({key: tensors[key] for key in part}, folder / file, metadata={"format": "pt"})
        index["weight_map"] |= dict.fromkeys(part, file)
        index["metadata"]["total_size"] += sum(tensors[k].numel() * 2 for k in part)
    write_json(folder / "model.safetensors.index.json", index)


def finish_configs(folder: pathlib.Path, spec: Folder, tokenizer: tokenizers.Tokenizer) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    generation = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}
    template = None
    tokenizer_config = dict(TOKENIZER_CONFIGS[spec.tokenizer])
    if spec.tokenizer.startswith("qwen"):
        ends = [tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")]
        generation["eos_token_id"] = ends
        template = CHAT_TEMPLATE if spec.tokenizer == "qwen35" else None
        # One token that stands nowhere else.
        extra = tokenizer.get_vocab_size()
        tokenizer_config["added_tokens_decoder"] = {
            str(extra): {"content": "<|audio_pad|>", "special": True}}
    elif spec.tokenizer == "gemma":
        config["eos_token_id"] = [1, tokenizer.token_to_id("<end_of_turn>")]
        generation = {"do_sample": False, "temperature": 0.1}
    else:
        config["bos_token_id"] = tokenizer.token_to_id("<|begin_of_text|>")
        config["eos_token_id"] = [tokenizer.token_to_id("<|end_of_text|>"),
                                  tokenizer.token_to_id("<|eot_id|>")]
    if spec.float8_block:
        config["quantization_config"] = {
            "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
            "weight_block_size": [spec.float8_block, spec.float8_block]}
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", generation)
    if template:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    save_tokenizer(folder, tokenizer, tokenizer_config, string_merges=spec.tokenizer == "llama3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(FOLDERS), help="default: all folders")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    decomposed = "".join(text + END_OF_TEXT for text in decomposed_texts())
    (HERE / "decomposed.inp").write_bytes(decomposed.encode())
    for name in parser.parse_args().names:
        make(name, seed=1 + list(FOLDERS).index(name))


if __name__ == "__main__":
    sys.exit(main())
