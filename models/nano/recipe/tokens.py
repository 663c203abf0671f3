"""Token ids of the training text, and the rows of a batch.

    tokens.py         writes build/nano/tokens/DOMAIN.{train,heldout}.npy, uint16, <|endoftext|> after each document

A row of dialogues starts with the beginning of one, as an answer does when the model is used; rows of the other
domains begin anywhere.
"""

import multiprocessing
import pathlib

import numpy as np
import tokenizers

import places
from facts import documents

SPLITS = ("train", "heldout")


def _encode(job: tuple[str, str]) -> str:
    domain, split = job
    tokenizer = tokenizers.Tokenizer.from_file(str(places.TOKENIZER / "tokenizer.json"))
    end = tokenizer.token_to_id(places.END_OF_TEXT)
    parts: list[np.ndarray] = []
    for text in documents(domain, split):
        parts.append(np.array([*tokenizer.encode(text).ids, end], np.uint16))
    ids = np.concatenate(parts)
    np.save(places.TOKENS / f"{domain}.{split}.npy", ids)
    return f"{domain}.{split}: {len(parts)} documents, {len(ids) / 1e6:.2f} M tokens"


def write() -> None:
    places.TOKENS.mkdir(parents=True, exist_ok=True)
    jobs = [(domain, split) for domain in places.DOMAINS for split in SPLITS]
    with multiprocessing.Pool(2) as pool:
        for line in pool.imap_unordered(_encode, jobs):
            print(line, flush=True)


class Rows:
    """All rows of [length + 2] tokens of one split: the inputs, the next token, and the one after it.

    An epoch goes through every row once in a shuffled order, the same for the same seed.
    """

    def __init__(self, folder: pathlib.Path, split: str, length: int, end: int, shares: dict[str, float] | None = None):
        self.length = length
        rows, self.domain_of = [], []
        for index, domain in enumerate(places.DOMAINS):
            path = folder / f"{domain}.{split}.npy"
            if not path.exists():
                continue
            ids = np.load(path)
            made = self._dialogues(ids, end) if domain == "dialogue" else self._cut(ids)
            repeat = (shares or {}).get(domain, 1)
            rows.extend([made] * repeat)
            self.domain_of.extend([index] * (len(made) * repeat))
        self.rows = np.concatenate(rows)
        self.domain_of = np.array(self.domain_of)

    def _cut(self, ids: np.ndarray) -> np.ndarray:
        starts = np.arange(0, len(ids) - self.length - 2, self.length)
        return np.stack([ids[start : start + self.length + 2] for start in starts])

    def _dialogues(self, ids: np.ndarray, end: int) -> np.ndarray:
        """Each row starts with the dialogue that the row before was cut in."""
        starts = np.concatenate([[0], np.flatnonzero(ids == end) + 1])
        rows, at = [], 0
        while at + self.length + 2 <= len(ids):
            rows.append(ids[at : at + self.length + 2])
            cut = starts[np.searchsorted(starts, at + self.length, side="right") - 1]
            at = cut if cut > at else at + self.length
        return np.stack(rows)

    def epoch(self, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).permutation(len(self.rows))


if __name__ == "__main__":
    write()
