"""Trains a model: train.py OUT [--shape mixture|dense] [--steps N] [--seconds S] ...

Writes OUT/checkpoint.pt every few minutes and at the end, OUT/peak.pt before the rate falls (a longer training can go
on from there), OUT/log.tsv and OUT/heldout.tsv. A run that finds a checkpoint goes on from it, so that a long training
can be made of short ones; --stop ends a run early.
"""

import argparse
import math
import pathlib
import time
from typing import TextIO

import torch

import places
from muon import Optimiser
from network import Network
from shape import SHAPES
from tokens import Rows

SAVE_EVERY = 240  # seconds
LOG_EVERY = 20  # steps
MEASURE_EVERY = 400  # steps
PREDICTION_WEIGHT, BALANCE_WEIGHT = 0.3, 0.01
REPEATED = {"dialogue": 2, "german": 2}  # domains that an epoch has twice
FALLS_FROM = 0.5  # of the training


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokens", type=pathlib.Path, default=places.TOKENS)
    parser.add_argument("--shape", choices=SHAPES, default="mixture")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=math.inf, help="of training in all; the schedule keeps to it")
    parser.add_argument("--stop", type=float, default=math.inf, help="seconds after which this run saves and ends")
    parser.add_argument("--batch", type=int, default=64, help="rows")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a row")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--end", type=int, default=10_214, help="id of <|endoftext|>")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available())
    return parser.parse_args()


def rate_at(progress: float, peak: float) -> float:
    """Rises over the first fiftieth, stays until half, falls to nothing along a line."""
    return peak * min(1.0, progress * 50 + 1e-3, max(0.0, (1 - progress) / (1 - FALLS_FROM)))


class Batches:
    """Endless batches, epoch after epoch; a number says where, so a resumed run goes on exactly."""

    def __init__(self, rows: Rows, batch: int, device: str):
        self.rows, self.batch = rows, batch
        self.data = torch.from_numpy(rows.rows.astype("int16")).to(device)  # ids are below 2^15
        self.epoch, self.order = -1, None

    @property
    def per_epoch(self) -> int:
        return len(self.rows.rows) // self.batch

    def at(self, step: int) -> torch.Tensor:
        if step // self.per_epoch != self.epoch:
            self.epoch = step // self.per_epoch
            self.order = torch.from_numpy(self.rows.epoch(self.epoch)).to(self.data.device)
        start = step % self.per_epoch * self.batch
        return self.data[self.order[start : start + self.batch]].long()


class Training:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(1)
        low = torch.bfloat16 if self.device == "cuda" else torch.float32
        self.model = Network(SHAPES[arguments.shape], low).to(self.device)
        self.optimiser = Optimiser(self.model)
        self.step, self.seconds = 0, 0.0
        self.path = arguments.out / "checkpoint.pt"
        if self.path.exists():
            self.load()
        if arguments.compile:
            self.model.compile_parts()

    def load(self) -> None:
        """Weights alone will do: the optimisers' averages reach back some twenty steps."""
        saved = torch.load(self.path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(saved["weights"])
        if "optimiser" in saved:
            self.optimiser.load(saved["optimiser"])
        self.step, self.seconds = saved["step"], saved["seconds"]

    def save(self, path: pathlib.Path) -> None:
        unfinished = path.with_suffix(".new")
        torch.save(
            {
                "weights": self.model.state_dict(),
                "optimiser": self.optimiser.state(),
                "step": self.step,
                "seconds": self.seconds,
            },
            unfinished,
        )
        unfinished.replace(path)

    def train_step(self, ids: torch.Tensor, progress: float) -> torch.Tensor:
        here, there, balance = self.model.losses(ids)
        (here + PREDICTION_WEIGHT * there + BALANCE_WEIGHT * balance).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimiser.step(rate_at(progress, self.arguments.rate))
        return torch.stack((here, there, balance, norm)).detach()

    def losses(self, ids: torch.Tensor) -> torch.Tensor:
        """Of the next token and the one after it: by the code that trains, gradients and all, which is compiled."""
        return torch.stack(self.model.losses(ids)[:2]).detach()

    def held_out_losses(self, held_out: Batches) -> list[float]:
        return torch.stack([self.losses(held_out.at(i)) for i in range(held_out.per_epoch)]).mean(0).tolist()

    @property
    def progress(self) -> float:
        return max(self.step / self.arguments.steps, self.seconds / self.arguments.seconds)

    def write(self, file: TextIO, values: list[float]) -> str:
        """A line of a log: step, million tokens, seconds, values."""
        tokens = self.step * self.arguments.batch * self.arguments.length
        line = "\t".join(f"{x:.5g}" for x in (self.step, tokens / 1e6, self.seconds, *values))
        print(line, file=file, flush=True)
        return line

    def run(self, batches: Batches, held_out: Batches) -> None:
        """The clock starts after the first step, which compiles."""
        before, saved, start = self.seconds, time.monotonic(), None
        out = self.arguments.out
        with (out / "log.tsv").open("a") as log, (out / "heldout.tsv").open("a") as measured:
            while self.progress < 1 and self.seconds - before <= self.arguments.stop:
                was = self.progress
                found = self.train_step(batches.at(self.step), was)
                self.step += 1
                if start is None:
                    found.tolist()  # waits for the device
                    start = time.monotonic()
                if self.step % LOG_EVERY == 0:
                    values = found.tolist()
                    self.seconds = before + time.monotonic() - start
                    line = self.write(log, values)
                    if self.step % (10 * LOG_EVERY) == 0 or self.step <= 5 * LOG_EVERY:
                        print(line, flush=True)
                    if time.monotonic() - saved > SAVE_EVERY:
                        self.save(self.path)
                        saved = time.monotonic()
                if self.step % MEASURE_EVERY == 0 or self.progress >= 1:
                    print("held out:", self.write(measured, self.held_out_losses(held_out)), flush=True)
                if was < FALLS_FROM <= self.progress:
                    self.save(out / "peak.pt")
        self.save(self.path)


def main() -> None:
    arguments = options()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    rows = Rows(arguments.tokens, "train", arguments.length, arguments.end, REPEATED)
    held_out = Rows(arguments.tokens, "heldout", arguments.length, arguments.end)
    training = Training(arguments)
    print(f"{sum(p.numel() for p in training.model.parameters())} weights, {len(rows.rows)} rows", flush=True)
    training.run(*(Batches(each, arguments.batch, training.device) for each in (rows, held_out)))


if __name__ == "__main__":
    main()
