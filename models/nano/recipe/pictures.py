"""Pictures of the model card: pictures.py MIXTURE DENSE EVALUATION.json

MIXTURE and DENSE are the folders that train.py wrote. Writes losses.png (losses in training, smoothed, and on
held-out text) and experts.png (how often each expert is chosen).
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)
import numpy as np  # noqa: E402

import places  # noqa: E402

SMOOTHED = 15  # lines of the log, 20 steps each


def smoothed(values: np.ndarray) -> np.ndarray:
    return np.convolve(values, np.ones(SMOOTHED) / SMOOTHED, mode="valid")


def losses(mixture: pathlib.Path, dense: pathlib.Path) -> None:
    """log.tsv: step, million tokens, seconds, loss, loss of the prediction block, balance, gradient norm.

    heldout.tsv: the first five of these.
    """
    figure, axes = plt.subplots(figsize=(7, 3.6))
    for folder, name, colour in ((mixture, "mixture", "tab:blue"), (dense, "dense control", "tab:orange")):
        log, held_out = np.loadtxt(folder / "log.tsv"), np.loadtxt(folder / "heldout.tsv")
        tokens = log[SMOOTHED - 1 :, 1]
        axes.plot(tokens, smoothed(log[:, 3]), color=colour, alpha=0.4, label=f"{name}, training")
        axes.plot(held_out[:, 1], held_out[:, 3], color=colour, label=f"{name}, held out")
        axes.plot(held_out[:, 1], held_out[:, 4], color=colour, linestyle=":", label=f"{name}, held out, token after it")
    axes.set(xlabel="million tokens", ylabel="nats per token", ylim=(1.1, 3.2))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(places.CARD / "losses.png", dpi=90)


def experts(evaluation: pathlib.Path) -> None:
    """One row of cells for each domain, one picture for each layer."""
    report = json.loads(evaluation.read_text())
    usage = np.array([report[domain]["expert_usage"] for domain in places.DOMAINS])  # [domains, layers, experts]
    figure, grid = plt.subplots(3, 3, figsize=(10, 6), sharex=True, sharey=True)
    for layer, axes in enumerate(grid.flat):
        image = axes.imshow(usage[:, layer] * usage.shape[-1], aspect="auto", vmin=0, vmax=4, cmap="magma")
        axes.set_title(f"layer {layer}" if layer + 1 < usage.shape[1] else "prediction block", fontsize=9)
        axes.set_yticks(range(len(places.DOMAINS)), places.DOMAINS, fontsize=8)
    figure.supxlabel("expert", fontsize=9)
    figure.tight_layout()
    figure.colorbar(image, ax=grid, label="times an even share", fraction=0.03, pad=0.02)
    figure.savefig(places.CARD / "experts.png", dpi=80)


if __name__ == "__main__":
    losses(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    experts(pathlib.Path(sys.argv[3]))
