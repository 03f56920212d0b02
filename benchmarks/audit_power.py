"""How near an audit's lower bounds come to the true loss, and how often it accuses a mechanism wrongly.

Randomized response with five levels loses exactly epsilon between any two of them, so its bounds show
what the statistics cost. The share of false alarms is that of whole audits of a preset that is kept.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.auditing import Sent, measured
from dprec.mechanisms import RandomizedResponse
from dprec.ratings import RatingScale
from simulation import auditing, load

CONFIDENCE = 0.99
STARS = RatingScale.evenly(1, 5, 1)


def bound(epsilon: float, people: int, seed: int) -> float:
    """Return the bound on randomized response from so many people per level, over all pairs of levels."""
    channel = RandomizedResponse().channel(STARS, epsilon)
    random = np.random.default_rng(seed)

    def sent(level: int) -> NDArray[np.int64]:
        words = random.integers(0, 2**64, people, dtype=np.uint64)
        return channel.sample(np.full(people, level, dtype=np.uint8), words).astype(np.int64)

    groups = [Sent.of_rounds([sent(level)]) for level in range(1, STARS.levels + 1)]
    pairs = [(one, other) for place, one in enumerate(groups) for other in groups[:place]]
    return measured(pairs, 1 - CONFIDENCE).at_least


def bounds(epsilon: float, people: int, seeds: int) -> list[float]:
    """Return the bounds of several seeds, ascending."""
    return sorted(bound(epsilon, people, seed) for seed in range(seeds))


def false_alarms(audits: int, people: int) -> int:
    """Return how many audits of randomized response at epsilon 1 find a leak."""
    settings = [
        "protocol.mechanism={kind: randomized-response}",
        "dataset={kind: synthetic, users: 20, items: 9}",
    ]
    config = load("blp-mf", [*settings, "dataset.ratings=100"])
    results = (
        auditing.audit(config, trials=people, seed=1000 * seed, confidence=CONFIDENCE)
        for seed in range(audits)
    )
    return sum(not result.holds for result in results)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print every measurement beside its requirement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--audits", type=int, default=50, help="audits in which false alarms are counted")
    options = parser.parse_args(arguments)
    report(
        "epsilon 1, 1,000,000 people per level, 5 seeds: smallest bound", lambda: low(1.0, 1_000_000), "0.95"
    )
    report(
        "epsilon 8, 1,000,000 people per level, 5 seeds: smallest bound", lambda: low(8.0, 1_000_000), "7.5"
    )
    report(
        "epsilon 1, 100,000 people per level, 20 seeds: second smallest bound",
        lambda: bounds(1.0, 100_000, 20)[1],
        "0.85",
    )
    report(
        f"false alarms in {options.audits} audits", lambda: false_alarms(options.audits, 2_000), "at most 2"
    )


def low(epsilon: float, people: int) -> float:
    """Return the smallest bound of five seeds."""
    return bounds(epsilon, people, 5)[0]


def report(what: str, metric: Callable[[], float], required: str) -> None:
    """Print a measurement, its requirement and its time."""
    started = time.perf_counter()
    value = metric()
    print(f"{what}: {value:.3f} (required: {required}; {time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
