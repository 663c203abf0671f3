#!/usr/bin/env python3
"""Makes chains.golden: random sampling requests, and what a plain numpy reading of the definitions
of docs/sampling.md chooses for them. Layout in PROVENANCE.md. Needs numpy.
"""

import pathlib
import struct

import numpy as np

N_CASES = 300
N_VOCAB = 64
MARGIN = 1e-5  # requests whose outcome hangs on a smaller difference of probabilities are left out


class NearTie(Exception):
    """The outcome depends on rounding."""


def philox4x32_10(counter: list[int], key: list[int]) -> list[int]:
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(seed: int, position: int) -> float:
    words = philox4x32_10([position & 0xFFFFFFFF, position >> 32, 0, 0],
                          [seed & 0xFFFFFFFF, seed >> 32])
    return ((words[0] << 32 | words[1]) >> 11) * 2.0**-53


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def check_apart(values, threshold: float) -> None:
    if np.abs(np.asarray(values) - threshold).min() < MARGIN:
        raise NearTie


def edit(z: np.ndarray, p: dict, history: list[int], n_prompt: int) -> np.ndarray:
    z = z.copy()
    for token, bias in p["bias"]:
        z[token] = -np.inf if bias <= -100 else z[token] + bias
    last = p["repeat_last_n"]
    window = history if last < 0 else history[len(history) - min(last, len(history)):]
    r = p["repeat_penalty"]
    for token in set(window):
        z[token] = z[token] / r if z[token] > 0 else z[token] * r
    counted = history[n_prompt:] if p["output_only"] else window
    for token in set(counted):
        z[token] -= counted.count(token) * p["frequency_penalty"] + p["presence_penalty"]
    return z


def top_k(ids, z, p):
    if p["top_k"] <= 0:
        return ids, z
    order = sorted(range(len(ids)), key=lambda i: (-z[i], ids[i]))[: p["top_k"]]
    return ids[order], z[order]


def typical(ids, z, p):
    if p["typical_p"] >= 1:
        return ids, z
    prob = softmax(z)
    entropy = -(prob * np.log(prob)).sum()
    distance = np.abs(-np.log(prob) - entropy)
    order = np.argsort(distance, kind="stable")
    if len(order) > 1 and np.diff(distance[order]).min() < MARGIN:
        raise NearTie
    mass = prob[order].cumsum()
    check_apart(mass, p["typical_p"])
    n_keep = max(int((mass <= p["typical_p"]).sum()) + 1, p["min_keep"])
    return ids[order[:n_keep]], z[order[:n_keep]]


def top_p(ids, z, p):
    if p["top_p"] >= 1:
        return ids, z
    prob = softmax(z)
    order = np.lexsort((ids, -z))
    mass_before = prob[order].cumsum() - prob[order]
    check_apart(mass_before[1:] if len(ids) > 1 else [0.5], p["top_p"])
    n_keep = max(int((mass_before < p["top_p"]).sum()), p["min_keep"])
    return ids[order[:n_keep]], z[order[:n_keep]]


def min_p(ids, z, p):
    if p["min_p"] <= 0:
        return ids, z
    prob = softmax(z)
    check_apart(prob / prob.max(), p["min_p"])
    order = np.lexsort((ids, -z))
    n_keep = max(int((prob >= p["min_p"] * prob.max()).sum()), p["min_keep"])
    return ids[order[:n_keep]], z[order[:n_keep]]


def choose(logits: np.ndarray, p: dict, history: list[int], n_prompt: int, position: int):
    """(token, log probability)"""
    z = edit(logits.astype(np.float64), p, history, n_prompt)
    if p["temperature"] <= 0:
        return int(z.argmax()), 0.0
    ids = np.flatnonzero(z > -np.inf)
    z = z[ids]
    for stage in (top_k, typical, top_p, min_p):
        ids, z = stage(ids, z, p)
    order = np.argsort(ids)
    ids, prob = ids[order], softmax(z[order] / p["temperature"])
    u = uniform(p["seed"], position)
    check_apart(prob.cumsum()[:-1] if len(ids) > 1 else [-1.0], u)
    chosen = int((prob.cumsum() <= u).sum())
    return int(ids[chosen]), float(np.log(prob[chosen]))


def random_params(rng: np.random.Generator) -> dict:
    def sometimes(value, off, chance=0.5):
        return value if rng.random() < chance else off

    return {
        "temperature": sometimes(round(rng.uniform(0.2, 2.0), 3), 0.0, 0.9),
        "top_k": int(sometimes(rng.integers(1, N_VOCAB + 8), 0)),
        "typical_p": sometimes(round(rng.uniform(0.1, 0.99), 3), 1.0, 0.4),
        "top_p": sometimes(round(rng.uniform(0.05, 0.99), 3), 1.0),
        "min_p": sometimes(round(rng.uniform(0.01, 0.6), 3), 0.0),
        "min_keep": int(sometimes(rng.integers(1, 6), 0, 0.3)),
        "repeat_penalty": sometimes(round(rng.uniform(0.7, 1.6), 3), 1.0),
        "frequency_penalty": sometimes(round(rng.uniform(-1, 1), 3), 0.0),
        "presence_penalty": sometimes(round(rng.uniform(-1, 1), 3), 0.0),
        "repeat_last_n": int(rng.choice([-1, 0, 5, 64])),
        "output_only": int(rng.integers(2)),
        "seed": int(rng.integers(2**64, dtype=np.uint64)),
        "bias": [(int(t), float(b)) for t, b in zip(
            rng.choice(N_VOCAB, 3, replace=False), rng.choice([-100.0, -2.5, 1.25, 3.0], 3))]
        if rng.random() < 0.5 else [],
    }


def main() -> None:
    rng = np.random.default_rng(1)
    cases = []
    n_skipped = 0
    while len(cases) < N_CASES:
        logits = rng.normal(0, rng.uniform(0.5, 4), N_VOCAB).astype(np.float32)
        history = rng.integers(0, N_VOCAB, rng.integers(0, 100)).tolist()
        n_prompt = int(rng.integers(0, len(history) + 1))
        position = int(rng.choice([len(history), rng.integers(2**40)]))
        p = random_params(rng)
        try:
            token, log_probability = choose(logits, p, history, n_prompt, position)
        except NearTie:
            n_skipped += 1
            continue
        record = struct.pack(
            "<8d", p["temperature"], p["top_p"], p["min_p"], p["typical_p"], p["repeat_penalty"],
            p["frequency_penalty"], p["presence_penalty"], log_probability)
        record += struct.pack("<4qQ", p["top_k"], p["min_keep"], p["repeat_last_n"], position,
                              p["seed"])
        record += struct.pack("<5i", p["output_only"], len(p["bias"]), len(history), n_prompt,
                              token)
        record += b"".join(struct.pack("<id", *entry) for entry in p["bias"])
        record += np.array(history, "<i4").tobytes() + logits.tobytes()
        cases.append(record)
    path = pathlib.Path(__file__).parent / "chains.golden"
    path.write_bytes(struct.pack("<2i", N_CASES, N_VOCAB) + b"".join(cases))
    print(f"{N_CASES} cases, {n_skipped} near ties left out, {path.stat().st_size} bytes")


if __name__ == "__main__":
    assert philox4x32_10([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    main()
