"""Measures checkpoints on held-out text: evaluate.py OUT.json --mixture CHECKPOINT [--dense CHECKPOINT]

Per domain: bits per byte of the mixture (BF16 and Q8_0) and of the dense control, the same for the token two on,
how often each expert of each layer is chosen, and the share of choices that BF16 and Q8_0 have in common.
"""

import argparse
import collections
import json
import math
import pathlib

import numpy as np
import tokenizers
import torch

import places
from network import Network
from rounding import rounded
from shape import SHAPES
from tokens import Rows

LENGTH = 2048
BATCH = 8


def byte_lengths(folder: pathlib.Path) -> torch.Tensor:
    """Bytes of text that each token stands for: its letters in the byte-level alphabet; the end of a text has none."""
    vocab = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    lengths = torch.zeros(len(vocab))
    for token, number in vocab.items():
        lengths[number] = 0 if token == places.END_OF_TEXT else len(token)
    return lengths


def load(path: pathlib.Path, shape: str, how: str, device: str) -> Network:
    low = torch.bfloat16 if device == "cuda" else torch.float32
    model = Network(SHAPES[shape], low)
    model.load_state_dict(rounded(torch.load(path, map_location="cpu", weights_only=True)["weights"], how))
    return model.to(device).eval()


class Measure:
    """Sums over the rows of one domain for one model."""

    def __init__(self, lengths: torch.Tensor):
        self.lengths = lengths
        self.nats = collections.Counter()
        self.bytes = collections.Counter()
        self.choices: list[list[torch.Tensor]] = []  # of each batch, of each layer: [rows, used]

    @torch.no_grad()
    def add(self, model: Network, ids: torch.Tensor) -> None:
        hidden, _, choices = model.hidden(ids[:, :-2])
        further, _, last = model.predicted(hidden, ids[:, 1:-1])
        for name, rows, targets in (("next", hidden, ids[:, 1:-1]), ("after_next", further, ids[:, 2:])):
            self.nats[name] += model.entropy(rows, targets).sum().item()
            self.bytes[name] += self.lengths[targets].sum().item()
        if last is not None:
            self.choices.append([chosen.cpu() for chosen in (*choices, last)])

    def bits_per_byte(self) -> dict[str, float]:
        return {name: self.nats[name] / math.log(2) / self.bytes[name] for name in self.nats}

    def usage(self, n_experts: int) -> list[list[float]]:
        """[layers][experts]: share of the choices; the layer of the prediction block is last."""
        layers = [torch.cat(parts).flatten() for parts in zip(*self.choices)]
        return [(torch.bincount(layer, minlength=n_experts) / layer.numel()).tolist() for layer in layers]


def agreement(a: Measure, b: Measure) -> float:
    """Share of the experts chosen by a that b chooses for the same token."""
    same = total = 0
    for ours, theirs in zip(a.choices, b.choices):
        for x, y in zip(ours, theirs):
            same += (x[:, :, None] == y[:, None, :]).any(-1).sum().item()
            total += x.numel()
    return same / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mixture", type=pathlib.Path, required=True)
    parser.add_argument("--dense", type=pathlib.Path)
    parser.add_argument("--tokens", type=pathlib.Path, default=places.TOKENS)
    parser.add_argument("--tokenizer", type=pathlib.Path, default=places.TOKENIZER)
    parser.add_argument("--rows", type=int, default=64, help="of each domain, at most")
    parser.add_argument(
        "--shape", choices=SHAPES, default="mixture", help="of --mixture; tiny ones are for trying this out"
    )
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = byte_lengths(arguments.tokenizer).to(device)
    end = int(torch.nonzero(lengths == 0)[0])
    rows = Rows(arguments.tokens, "heldout", LENGTH, end)
    models = {how: load(arguments.mixture, arguments.shape, how, device) for how in ("bf16", "q8_0")}
    if arguments.dense:
        models["dense"] = load(arguments.dense, "dense", "bf16", device)
    report = {}
    for index, domain in enumerate(places.DOMAINS):
        chosen = rows.rows[rows.domain_of == index][: arguments.rows]
        measures = {name: Measure(lengths) for name in models}
        for ids in np.array_split(chosen, max(1, math.ceil(len(chosen) / BATCH))):
            batch = torch.from_numpy(ids.astype(np.int64)).to(device)
            for name, model in models.items():
                measures[name].add(model, batch)
        report[domain] = {
            "tokens": len(chosen) * LENGTH,
            "bits_per_byte": {name: measure.bits_per_byte() for name, measure in measures.items()},
            "expert_usage": measures["bf16"].usage(SHAPES[arguments.shape].experts),
            "experts_that_agree": agreement(measures["bf16"], measures["q8_0"]),
        }
        print(
            domain,
            len(chosen),
            report[domain]["bits_per_byte"],
            f"{report[domain]['experts_that_agree']:.4f}",
            flush=True,
        )
    arguments.out.write_text(json.dumps(report))


if __name__ == "__main__":
    main()
