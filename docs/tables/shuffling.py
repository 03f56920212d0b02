"""What one report loses among n shuffled reports on the same item: epsilon at a delta, by budget and bound.

    python -m docs.tables.shuffling [--delta 1e-6] [--csv]

Bounds: `blanket` is the one that runs are charged, for the channel in question; `two answers` is the
reduction to the two symbols in question (k-ary response); `clones` knows the local epsilon alone; `closed
form` is a formula. No bound is above the local epsilon, which stands where nothing is gained.
"""

from __future__ import annotations

import argparse

from dprec.accounting import (
    ShuffledChannel,
    clones_delta,
    closed_form_epsilon,
    least_epsilon,
    two_answers_delta,
)
from dprec.mechanisms import BoundedLaplace, Mechanism, RandomizedResponse, ThresholdBit
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
REPORTS = (100, 1_000, 10_000, 100_000, 1_000_000)
MECHANISMS: dict[str, Mechanism] = {
    "one bit": ThresholdBit(),
    "5-ary response": RandomizedResponse(),
    "bounded Laplace": BoundedLaplace(),
}


def bounds(mechanism: Mechanism, local: float, reports: int, delta: float) -> dict[str, float]:
    """Return epsilon by the name of the bound."""
    channel = mechanism.channel(STARS, local)
    found = {"blanket": ShuffledChannel(channel).epsilon(reports, delta)}
    if isinstance(mechanism, RandomizedResponse | ThresholdBit):
        found["two answers"] = least_epsilon(
            lambda epsilon: two_answers_delta(epsilon, reports, local, channel.symbols), local, delta
        )
    found["clones"] = least_epsilon(lambda epsilon: clones_delta(epsilon, reports, local), local, delta)
    found["closed form"] = closed_form_epsilon(reports, local, delta)
    return found


def main() -> None:
    """Print the table, or its cells one per line for a figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--delta", type=float, default=1e-6)
    arguments.add_argument("--csv", action="store_true", help="one line per cell")
    chosen = arguments.parse_args()
    if chosen.csv:
        print("mechanism,local_epsilon,bound,reports,epsilon")
    else:
        print(f"{'':42s}" + "".join(f"{reports:>12,}" for reports in REPORTS))
    for name, mechanism in MECHANISMS.items():
        for local in EPSILONS:
            cells = [bounds(mechanism, local, reports, chosen.delta) for reports in REPORTS]
            for bound in cells[0]:
                row = [cell[bound] for cell in cells]
                if not chosen.csv:
                    label = f"{name}, {local:g}, {bound}"
                    print(f"{label:42s}" + "".join(f"{epsilon:12.4f}" for epsilon in row), flush=True)
                    continue
                for reports, epsilon in zip(REPORTS, row, strict=True):
                    print(f"{name},{local:g},{bound},{reports},{epsilon:.6g}", flush=True)


if __name__ == "__main__":
    main()
