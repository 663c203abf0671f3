"""Makes the tokenizer golden data of this folder: see PROVENANCE.md.

Small vocabularies are trained with the Hugging Face `tokenizers` and Google `sentencepiece` libraries on the
documentation strings of Python's standard library, written as GGUF, and asked for the ids of nasty texts.
Pre-tokenizer splits come from `tokenizers` with the expressions as their models publish them.
"""

import importlib
import inspect
import io
import json
import os

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SEPARATOR = "\n__ggml_vocab_test__\n"  # as in the public vocabulary tests
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

TEXTS = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\n \n", " \n  \n   x", "\t\n\t x",
    "a", " a", "  a", "a ", "a  ", "a   b", "\ta", "a\tb", "a \n b", "end of line  \nnext",
    "Hello, world!", "Hello  world", " Hello World", "HELLO WORLD", "hello_world helloWorld HTTPServer",
    "don't can't I'll we've they're I'm he'd it's", "DON'T CAN'T I'LL WE'VE THEY'RE I'M HE'D IT'S",
    "'s 's's ''s 'S 'x 'RE 'rE", "it\u2019s", "it'\u017f it'\u017fa", "\u212aelvin 1\u212a",
    "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678 9", "1,234,567.89", "3.14159", "x1y22z333w4444",
    "1234abc 5678_9 abc1234", "0x1F 1e-9 100% $5.00 #42 @me", "\u0661\u0662\u0663\u0664\u0665", "\u0967\u0968\u0969\u096a",
    "\u00bd \u2167 \u2460 \u00b2", "12\u00bd 1234\u00bd5678", "\u4e00\u4e8c\u4e09123\u56db",
    "caf\u00e9 cafe\u0301 na\u00efve", "e\u0301\u0302\u0303", "\u0301", " \u0301a", "1\u03012", "a\u0301\u0301\u0301 b",
    "Vie\u0302\u0323t Nam Vi\u1ec7t Nam", "\u00c4\u00d6\u00dc\u00e4\u00f6\u00fc\u00df \u1e9e",
    "\u01c5\u01c8 \u02b0\u02b1 \u00aa\u00ba", "AbcDEF abcDef ABCdef A\u4e2dB \u4e2dAb",
    "\u043d\u0435\u0449\u043e \u043d\u0430 \u0411\u044a\u043b\u0433\u0430\u0440\u0441\u043a\u0438",
    "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u0645\u064e\u0631\u0652\u062d\u064e\u0628\u064b\u0627",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u1780\u17b6\u1793\u17cb\u178f\u17c2\u1796\u17b7\u179f\u17c1\u179f", "\u4f60\u597d\uff0c\u4e16\u754c\uff01 \u6211\u60f3\u5728apple\u5de5\u4f5c1314151\u5929\uff5e",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u30ab\u30bf\u30ab\u30ca\u30fc", "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab",
    "\U00020000\U0002a6d6 \u3400", "\uff28\uff45\uff4c\uff4c\uff4f \uff11\uff12\uff13",
    "\U0001f999 \U0001f999\U0001f999", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f44d\U0001f3fd\u2705\ufe0f",
    "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\U0001f636\u200d\U0001f32b\ufe0f",
    "a\u00a0b", "\u00a0\u00a0a", "a\u3000b", "a\u2003\u2003b", "a\u180eb", "a\u200bb", "a\u2060b", "a\ufeffb", "a\u0085b", "a\u2028b\u2029c", "a\x0bb\x0cc",
    "\x00", "a\x00b", "\x01\x02\x7f", "\x1b[31mred\x1b[0m", "\ufffd", "\ue000\U0010ffff",
    "!!!???...", "------=======", "''''''```````\"\"\"\"......!!!!!!??????", "(a) [b] {c} <d> /e/ \\f\\", "a/b//c///d\n//e", "?\r\n!\n\n.\r\r",
    "$+<=>^~|`", "#include <stdio.h>\nint main(void) {\n\treturn 0;\n}\n", "def f(x):\n    return x ** 2  # square\n\n\nprint(f(3))\n",
    "https://example.com/a?b=c&d=%20e#f", "user.name+tag@example.org", "C:\\Windows\\System32", "\u00ab quoted \u00bb \u201ctext\u201d \u2026 \u2014 \u2013",
    "\u20ac 5 \u00a3 6 \u00a5 7 \u2211 \u222b \u221a \u2264", "a|b,c.d!e?f\u2026g\u3002h\uff0ci\u3001j\u0964k\u06d4l\u060cm (n",
    "x" * 80, " " * 65, "\n" * 33, "1" * 40, "ab" * 50, "!" * 50, "\u00e0" * 60, "\u4e2d" * 40, "A" * 70, "aB" * 30, "\t" * 9 + "x", " \n" * 12,
    "the the the The THE", "def define defined undefined", "self.assertEqual(a, b)",
    "<|im_start|>user\nHi<|im_end|>\n", "<think>\nso\n</think>", "<|im_start|", "a<|im_end|><|im_end|>b", " <think> x </think> ",
    "<<|im_end|>>", "<|im_<|im_end|>end|>", "\u2581", "a\u2581b \u2581c", "<0x0A>", "</s><s><unk>",
]


def write_texts(path):
    with io.open(path, "w", encoding="utf-8", newline="") as file:
        file.write("".join(text + SEPARATOR for text in TEXTS))


def write_lines(path, lines):
    with io.open(path, "w", encoding="utf-8", newline="") as file:
        file.write("".join(line + "\n" for line in lines))


def write_ids(path, encode):
    write_lines(path, [" ".join(str(i) for i in encode(text)) for text in TEXTS])


# Pre-tokenizer expressions, one entry per distinct rule, as published.
CONTR = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTR}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTR}?"
         rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}")
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
LETTERS = (  # of deepseek-llm: docs/formats/tokenizers.md
    "41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F 386 388-38A 38C 38E-3A1 3A3-3F5 "
    "3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 "
    "1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC "
    "1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D "
    "212F-2134 2139 213C-213F 2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B "
    "A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB "
    "10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943")
LETTERS = "".join("-".join(chr(int(end, 16)) for end in run.split("-")) for run in LETTERS.split())


def gpt4_like(digits):
    return rf"{CONTR}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{TAIL}"


PRE = {
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "llama-bpe": [gpt4_like(r"\p{N}{1,3}")],
    "dbrx": [gpt4_like(r"\p{N}{1,3}")],
    "qwen2": [gpt4_like(r"\p{N}")],
    "qwen35": [rf"{CONTR}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{TAIL}"],
    "gpt-2": [GPT2],
    "roberta-bpe": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "deepseek-llm": [r"[\r\n]", rf"\s?[{LETTERS}]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                     r"\s+$", CJK, r"\p{N}+"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{TAIL}"],
    "tekken": [rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
               rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"],
    "gpt-4o": [GPT4O],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
    "seed-coder": [rf"{CONTR}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{TAIL}"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                   r"|\s*[\r\n]|\s+(?!\S)|\s+"],
    "minicpm5": [r"\p{N}{1,3}", gpt4_like(r"\p{N}+")],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
    "gemma4": [r"[^\n]+|[\n]+"],
    "whitespace": [r"\S+"],
}


def splitter(expressions):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(e), "isolated") for e in expressions])


def write_splits(path):
    """Per rule a line with its name, then a line per text: the bytes of each piece."""
    lines = []
    for name, expressions in PRE.items():
        split = splitter(expressions)
        lines.append(name)
        for text in TEXTS:
            pieces = [piece for piece, _ in split.pre_tokenize_str(text)] if text else []
            assert "".join(pieces) == text
            lines.append(" ".join(str(len(piece.encode())) for piece in pieces))
    write_lines(path, lines)


def training_text():
    modules = ["argparse", "asyncio", "collections", "csv", "datetime", "decimal", "email", "functools", "heapq", "http.client",
               "inspect", "itertools", "json", "logging", "math", "os", "pathlib", "pickle", "random", "re", "shutil", "socket",
               "sqlite3", "statistics", "string", "subprocess", "tarfile", "threading", "typing", "unittest", "urllib.parse", "zipfile"]
    documents = []
    for name in modules:
        module = importlib.import_module(name)
        documents.append(inspect.getdoc(module) or "")
        for _, member in sorted(vars(module).items()):
            if inspect.isclass(member) or inspect.isfunction(member):
                documents.append(inspect.getdoc(member) or "")
    return documents + [text for text in TEXTS if "<" not in text] * 2


def write_gguf(path, model, tokens, types, scores=None, merges=None, keys=()):
    writer = gguf.GGUFWriter(path, "none")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if scores is not None:
        writer.add_token_scores(scores)
    if merges is not None:
        writer.add_token_merges(merges)
    for add, value in keys:
        getattr(writer, add)(value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


ADDED = [("<|begin|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<think>", USER_DEFINED),
         ("</think>", USER_DEFINED), ("\n\n\n", USER_DEFINED)]


def add_tokens(tokenizer, with_control):
    for text, kind in ADDED + ([("<unk>", CONTROL)] if tokenizer.token_to_id("<unk>") is not None else []):
        if kind == USER_DEFINED or with_control:
            tokenizer.add_tokens([AddedToken(text, normalized=False, special=kind == CONTROL)])


def write_byte_pair(name, make, gguf_model, pre, n_tokens, documents):
    """A tokenizer of the `tokenizers` library: ids with control tokens recognised, and without (.user.out)."""
    trained = make(models.BPE(byte_fallback=gguf_model == "gemma4", unk_token="<unk>" if gguf_model == "gemma4" else None))
    special = ["<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)] if gguf_model == "gemma4" else []
    alphabet = pre_tokenizers.ByteLevel.alphabet() if gguf_model == "gpt2" else []
    trainer = trainers.BpeTrainer(vocab_size=n_tokens, special_tokens=special, initial_alphabet=alphabet,
                                  limit_alphabet=n_tokens // 4, show_progress=False, max_token_length=16)
    trained.train_from_iterator(documents, trainer)
    saved = json.loads(trained.to_str())["model"]
    vocab = dict(saved["vocab"])
    merges = [tuple(merge) for merge in saved["merges"]]
    vocab.update({text: len(vocab) + i for i, (text, _) in enumerate(ADDED) if text not in vocab})

    def build(with_control):
        tokenizer = make(models.BPE(vocab, merges, ignore_merges=gguf_model == "gpt2",
                                    **({"byte_fallback": True, "unk_token": "<unk>"} if gguf_model == "gemma4" else {})))
        add_tokens(tokenizer, with_control)
        return tokenizer

    kinds = dict(ADDED)
    tokens = sorted(vocab, key=vocab.get)
    types = [kinds.get(token, NORMAL) for token in tokens]
    if gguf_model == "gemma4":
        types[0] = UNKNOWN
        types[1:257] = [BYTE] * 256
    keys = [("add_tokenizer_pre", pre), ("add_bos_token_id", vocab["<|begin|>"]), ("add_eos_token_id", vocab["<|im_end|>"])]
    if gguf_model == "gemma4":
        keys.append(("add_unk_token_id", 0))
    write_gguf(f"{name}.gguf", gguf_model, tokens, types, merges=[" ".join(merge) for merge in merges], keys=keys)
    trusted, user = build(True), build(False)
    write_ids(f"{name}.gguf.out", lambda text: trusted.encode(text, add_special_tokens=False).ids)
    write_ids(f"{name}.gguf.user.out", lambda text: user.encode(text, add_special_tokens=False).ids)


def byte_level(model):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PRE["llama-bpe"][0]), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def visible_spaces(model):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = splitter(PRE["gemma4"])
    return tokenizer


def write_sentence_piece(name, gguf_model, documents, **options):
    """A model of the `sentencepiece` library, which never makes control tokens of text."""
    sentences = [line for document in documents for line in document.split("\n") if line.strip() and "\x00" not in line]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, byte_fallback=True, character_coverage=0.999,
        num_threads=1, minloglevel=2, max_sentence_length=10000, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    keys = [("add_bos_token_id", processor.bos_id()), ("add_eos_token_id", processor.eos_id()),
            ("add_unk_token_id", processor.unk_id()), ("add_add_space_prefix", proto.normalizer_spec.add_dummy_prefix),
            ("add_remove_extra_whitespaces", proto.normalizer_spec.remove_extra_whitespaces)]
    if proto.normalizer_spec.precompiled_charsmap:
        keys.append(("add_precompiled_charsmap", proto.normalizer_spec.precompiled_charsmap))
    write_gguf(f"{name}.gguf", gguf_model, [piece.piece for piece in proto.pieces], [piece.type for piece in proto.pieces],
               scores=[piece.score for piece in proto.pieces], keys=keys)
    write_ids(f"{name}.gguf.user.out", processor.encode)


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    documents = training_text()
    write_texts("texts.inp")
    write_splits("splits.out")
    write_byte_pair("byte_pair", byte_level, "gpt2", "llama-bpe", 1200, documents)
    write_byte_pair("visible_spaces", visible_spaces, "gemma4", "gemma4", 1400, documents)
    write_sentence_piece("sentence_piece", "llama", documents, model_type="bpe", vocab_size=1200,
                         normalization_rule_name="identity", remove_extra_whitespaces=False)
    with open("rules.tsv", "w", encoding="utf-8") as rules:  # code points, tab, replacement
        for code_point in range(0xFF21, 0xFF5F):
            rules.write(f"{code_point:X}\t{code_point - 0xFEE0:X}\n")
        rules.write("65 301\tE9\nA0\t20\n9\t20\nA\t20\nFB01\t66 69\n200B\t\n")
    write_sentence_piece("unigram", "t5", documents, model_type="unigram", vocab_size=1200,
                         normalization_rule_tsv="rules.tsv", remove_extra_whitespaces=True)
    os.remove("rules.tsv")


if __name__ == "__main__":
    main()
