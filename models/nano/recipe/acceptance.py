"""Share of right guesses of the prediction block, per domain and depth: acceptance.py HEARTH [OUT.json]

The engine goes on from held-out texts, greedily, always guessing `depth` tokens; the block's own prediction feeds
its next one.
"""

import json
import pathlib
import subprocess
import sys

import places
from facts import documents

DEPTHS = (1, 2, 3, 4)
PROMPTS = 6  # of each domain
PROMPT_CHARACTERS = 600
N_TOKENS = 160


def prompts(domain: str) -> list[str]:
    """Beginnings of texts; of dialogues what the user says, since markers cannot be given as text."""
    found = []
    for text in documents(domain, "heldout"):
        if domain == "dialogue":
            text = text.split("<|im_start|>user\n")[-1].split("<|im_end|>")[0]
            usable = "<tool_response>" not in text
        else:
            usable = len(text) > 2 * PROMPT_CHARACTERS or domain == "dictionary"
        if usable:
            found.append(text[:PROMPT_CHARACTERS])
        if len(found) == PROMPTS:
            break
    return found


def measure(hearth: str, domain: str, depth: int) -> tuple[int, int, int]:
    """(steps, drafted, accepted)"""
    steps = drafted = accepted = 0
    for prompt in prompts(domain):
        command = [
            hearth,
            "run",
            str(places.CARD / "nano.gguf"),
            "--temperature",
            "0",
            "-n",
            str(N_TOKENS),
            "--json",
            "--draft-depth",
            str(depth),
            *([] if domain == "dialogue" else ["--raw"]),
        ]
        done = subprocess.run(command, input=prompt, capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)["speculation"]
        steps += report["steps"]
        drafted += report["drafted"]
        accepted += report["accepted"]
    return steps, drafted, accepted


def main() -> None:
    table = {}
    for domain in places.DOMAINS:
        table[domain] = {}
        for depth in DEPTHS:
            steps, drafted, accepted = measure(sys.argv[1], domain, depth)
            table[domain][depth] = {"accepted_share": accepted / drafted, "tokens_per_step": 1 + accepted / steps}
        print(
            domain,
            *(
                f"{depth}: {found['accepted_share']:.2f} ({found['tokens_per_step']:.2f})"
                for depth, found in table[domain].items()
            ),
            flush=True,
        )
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(table))


if __name__ == "__main__":
    main()
