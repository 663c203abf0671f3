"""Where the recipe finds its inputs and leaves its results; everything big is under build/nano, which git ignores."""

import pathlib

RECIPE = pathlib.Path(__file__).resolve().parent
CARD = RECIPE.parent
BUILD = CARD.parents[1] / "build" / "nano"
PACKAGES = BUILD / "debs"
TEXT = BUILD / "text"
TOKENS = BUILD / "tokens"
TOKENIZER = BUILD / "tokenizer"

DOMAINS = ("manual", "manpage", "dictionary", "c", "python", "go", "json", "german", "dialogue")
END_OF_TEXT = "<|endoftext|>"
