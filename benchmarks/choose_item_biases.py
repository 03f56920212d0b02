"""Chooses the settings of `item-biases`, on tenths of MovieLens 100K's u1.base.

    python benchmarks/choose_item_biases.py [--path ../shared/data/ml-100k] [0.5 1 2]

In the preset shuffled-on-device: how much ratings of an item differ between users, and the dimensions of the
places of items, at the budgets that are named.
"""

from __future__ import annotations

import sys
from typing import Any

from validation import arguments, best_of, measured, tenth_of_u1

SEEDS = (1, 2, 3)


def main() -> None:
    """Print the figures of every value; exit with 1 if ours does not stand."""
    path, names = arguments(__doc__, ["0.5", "1", "2"])
    parts = [tenth_of_u1(path, seed) for seed in SEEDS]

    def judged(settings: dict[str, Any]) -> list[float]:
        return [
            measured("shuffled-on-device", {**settings, "protocol.privacy.epsilon": float(name)}, own, seed)
            for name in names
            for seed, own in zip(SEEDS, parts, strict=True)
        ]

    choices: dict[str, tuple[tuple[float, ...], float]] = {
        "protocol.completion.user_variance": ((0.1, 0.25, 0.4), 0.25),
        "protocol.completion.dimensions": ((12, 20, 30), 20),
    }
    stands = [
        best_of("item-biases", {key: tried}, judged, {key: own}) for key, (tried, own) in choices.items()
    ]
    sys.exit(0 if all(stands) else 1)


if __name__ == "__main__":
    main()
