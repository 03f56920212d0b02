"""Chooses how much ratings of an item differ between users, on tenths of MovieLens 100K's u1.base.

    python benchmarks/choose_item_effects.py [--path ../shared/data/ml-100k]

Of the completion `item-effects` in the preset shuffled-on-device, at three budgets.
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
    key = "protocol.completion.user_variance"

    def judged(settings: dict[str, Any]) -> list[float]:
        return [
            measured("shuffled-on-device", {**settings, "protocol.privacy.epsilon": float(name)}, own, seed)
            for name in names
            for seed, own in zip(SEEDS, parts, strict=True)
        ]

    sys.exit(0 if best_of("item-effects", {key: (0.0, 0.1, 0.25, 0.4)}, judged, {key: 0.25}) else 1)


if __name__ == "__main__":
    main()
