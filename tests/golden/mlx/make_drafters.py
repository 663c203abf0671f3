#!/usr/bin/env python3
"""Makes drafters/: multi-token-prediction heads as folders of their own, by the splitter of mlx-vlm.

    python3 tests/golden/mlx/make_drafters.py
"""

import pathlib

from mlx_vlm.speculative.drafters.qwen3_5_mtp.split import split_qwen3_5_mtp

HERE = pathlib.Path(__file__).parent
SOURCES = {"qwen35moe": HERE.parent / "huggingface" / "qwen35moe-fused-mtp"}


def main():
    for name, source in SOURCES.items():
        folder = HERE / "drafters" / name
        split_qwen3_5_mtp(str(source), str(folder))
        for copy in ("tokenizer.json", "tokenizer_config.json", "vocab.json"):
            (folder / copy).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
