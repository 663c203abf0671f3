"""The tokenizer: byte-level BPE with the family's pre-tokenizer and special tokens.

vocabulary.py     trains on a part of each domain and writes build/nano/tokenizer/
"""

import json

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, trainers

import places
from facts import documents

SIZE = 10_240
SAMPLE_BYTES = {"dialogue": 2_000_000, "json": 2_000_000, "german": 4_000_000}  # of each domain; else:
SAMPLE = 6_000_000

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
VISIBLE = (
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)


def sample():
    for domain in places.DOMAINS:
        left = SAMPLE_BYTES.get(domain, SAMPLE)
        for number, text in enumerate(documents(domain, "train")):
            if number % 3 == 0:
                yield text
                left -= len(text)
                if left < 0:
                    break


def train() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        sample(),
        trainers.BpeTrainer(
            vocab_size=SIZE - len(SPECIAL) - len(VISIBLE),
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in VISIBLE])
    assert tokenizer.get_vocab_size() == SIZE
    return tokenizer


def write(tokenizer: tokenizers.Tokenizer) -> None:
    places.TOKENIZER.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(places.TOKENIZER / "tokenizer.json"))
    ends = [tokenizer.token_to_id(token) for token in ("<|im_end|>", "<|endoftext|>")]
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "add_bos_token": False,
            "model_max_length": 4096,
        },
        "generation_config.json": {
            "do_sample": True,
            "temperature": 0.6,
            "top_k": 20,
            "top_p": 0.95,
            "eos_token_id": ends,
        },
    }
    for name, content in files.items():
        (places.TOKENIZER / name).write_text(json.dumps(content, indent=1) + "\n")
    (places.TOKENIZER / "chat_template.jinja").write_text((places.CARD / "chat_template.jinja").read_text())


if __name__ == "__main__":
    write(train())
