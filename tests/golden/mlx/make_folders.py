#!/usr/bin/env python3
"""Makes the MLX folders: tiny random models that mlx-lm converts and computes.

For every entry of FOLDERS a model of transformers is written as tests/golden/huggingface/make_golden.py does, converted by
mlx_lm.convert into a folder NAME beside this file, and run by mlx-lm with every number widened to float32:
  logits.golden    its logits, laid out as tests/golden/arch/PROVENANCE.md says, without greedy tokens
Needs mlx[cpu], mlx-lm and what make_golden.py needs; see PROVENANCE.md for versions.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import sys
import tempfile

import mlx.core as mx
import mlx_lm
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "huggingface"))
import make_golden  # noqa: E402
from make_golden import DECODER, EXPERTS, KEPT, RECURRENT, ROPE, SECTIONS, SHARED  # noqa: E402

WIDE = DECODER | {"hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
                  "num_key_value_heads": 2}


@dataclasses.dataclass(frozen=True)
class Folder:
    source: make_golden.Folder
    bits: int
    group: int
    mode: str = "affine"
    dtype: str = "bfloat16"
    differing: dict = dataclasses.field(default_factory=dict)  # end of a path: bits, or False


FOLDERS = {
    "llama": Folder(
        make_golden.Folder("Llama", WIDE | {
            "num_hidden_layers": 2, "intermediate_size": 128, "tie_word_embeddings": False,
            "rope_parameters": ROPE}, tokenizer="llama3"),
        bits=4, group=64, differing={"lm_head": 6, "layers.1.mlp.down_proj": False}),
    "gemma3": Folder(
        make_golden.Folder("Gemma3", WIDE | {
            "num_hidden_layers": 6, "tie_word_embeddings": True, "query_pre_attn_scalar": 20,
            "sliding_window": 5,
            "rope_parameters": {"full_attention": ROPE | {"rope_theta": 1e6},
                                "sliding_attention": ROPE}}, tokenizer="gemma"),
        bits=8, group=64, dtype="float16"),
    # Two value heads for each key head, inside a multimodal model.
    "qwen35": Folder(
        make_golden.Folder("Qwen3_5", WIDE | RECURRENT | {
            "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
            "linear_value_head_dim": 32, "tie_word_embeddings": True,
            "rope_parameters": SECTIONS}, multimodal=True, float32=KEPT),
        bits=3, group=32, differing={"in_proj_z": 5, "o_proj": 2, "embed_tokens": 8}),
    "qwen35moe": Folder(
        make_golden.Folder("Qwen3_5Moe", WIDE | RECURRENT | EXPERTS | SHARED | {
            "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"],
            "linear_value_head_dim": 64, "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 64, "tie_word_embeddings": False,
            "rope_parameters": SECTIONS}, multimodal=True, fused_experts=True, float32=KEPT),
        bits=4, group=64),
    "qwen3-mxfp4": Folder(
        make_golden.Folder("Qwen3", WIDE | {
            "num_hidden_layers": 1, "tie_word_embeddings": True, "rope_parameters": ROPE},
            tokenizer="qwen2"),
        bits=4, group=32, mode="mxfp4"),
    "qwen3moe-nvfp4": Folder(
        make_golden.Folder("Qwen3Moe", WIDE | EXPERTS | {
            "num_hidden_layers": 1, "moe_intermediate_size": 64, "norm_topk_prob": True,
            "tie_word_embeddings": False, "rope_parameters": ROPE}, tokenizer="qwen2"),
        bits=4, group=16, mode="nvfp4", differing={"layers.0.mlp.gate": False}),
}


def write_source(spec: make_golden.Folder, folder: pathlib.Path, seed: int) -> None:
    model = make_golden.make_model(spec)
    make_golden.randomise(spec, model, seed)
    model.to(torch.bfloat16).save_pretrained(folder)
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    if spec.fused_experts and not any(name.endswith("gate_up_proj") for name in tensors):
        tensors = make_golden.fuse_experts(tensors, spec.config["num_experts"])
    for key in tensors:
        if key.endswith(spec.float32 or "none"):
            tensors[key] = tensors[key].to(torch.float32)
    save_file(tensors, weights, metadata={"format": "pt"})
    make_golden.finish_configs(folder, spec, make_golden.TOKENIZERS[spec.tokenizer]())
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    text = config.get("text_config", config)  # with the names that mlx-lm reads, and released models have
    if "linear_num_key_heads" in spec.config:
        text["full_attention_interval"] = 2
    if "num_experts" in spec.config:
        text["num_experts"] = spec.config["num_experts"]
    if "rope_theta" in text["rope_parameters"]:
        text["rope_theta"] = text["rope_parameters"]["rope_theta"]
    make_golden.write_json(path, config)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for key, value in config.items():
        if isinstance(value, dict) and "content" in value:  # which transformers does not load
            config[key] = value["content"]
    make_golden.write_json(path, config)


def differing_packing(spec: Folder):
    """What mlx_lm.convert asks for each module, as its own predicates answer."""

    def predicate(path, module, *_):
        if path.endswith(("mlp.gate", "shared_expert_gate")) and spec.mode == "affine":
            return {"group_size": 64, "bits": 8}  # as the predicates of mlx-lm's models say
        for end, bits in spec.differing.items():
            if path.endswith(end):
                return bits and {"group_size": spec.group, "bits": bits}
        return True

    return predicate


def convert(spec: Folder, source: pathlib.Path, folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    mlx_lm.convert(str(source), mlx_path=str(folder), quantize=True, q_bits=spec.bits,
                   q_group_size=spec.group, q_mode=spec.mode, dtype=spec.dtype,
                   quant_predicate=differing_packing(spec))
    # Not needed, and not the same for every version.
    for name in ("README.md", "model.safetensors.index.json"):
        (folder / name).unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for module, value in spec.differing.items():
        if value is False:  # which older versions of mlx-lm wrote down
            config["quantization"]["model." + module] = False
    make_golden.write_json(folder / "config.json", config)


def save_logits(folder: pathlib.Path, seed: int) -> float:
    model, _ = mlx_lm.load(str(folder))
    model.set_dtype(mx.float32)
    prompt = np.random.default_rng(seed).integers(0, 300, make_golden.N_PROMPT).tolist()
    logits = np.array(model(mx.array([prompt]))[0])
    assert logits.dtype == np.float32
    make_golden.save_golden(folder / "logits.golden", prompt, logits)
    return np.abs(logits).max()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(FOLDERS), help="default: all folders")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name in parser.parse_args().names:
        seed = 101 + list(FOLDERS).index(name)
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / name
            source.mkdir()
            write_source(FOLDERS[name].source, source, seed)
            convert(FOLDERS[name], source, HERE / name)
        largest = save_logits(HERE / name, seed)
        size = sum(path.stat().st_size for path in (HERE / name).iterdir())
        print(f"| {name} | {seed} | {largest:.2f} | {size} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
