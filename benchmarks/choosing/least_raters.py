"""Chooses from how many raters on items have places, and prints what the table tells of who rated what.

    python benchmarks/choosing/least_raters.py [--path ../shared/data/ml-100k]

The guesses of guess_item_sets.py, as areas under the ROC curve for a person's other train ratings of
MovieLens 100K (u1), are means over the items with so many raters and over these raters. The RMSE is that of
`sets-only` on validation ratings, which are parts of the train ratings. Fails if that is worse with the least
raters of dprec by more than 0.002 than without.
"""

from __future__ import annotations

import sys

import numpy as np
from guess_item_sets import guesses, table_of_sets
from validation import arguments, measured, tenth_of_u1

from dprec.datasets import MovieLens100K
from dprec.observations import LEAST_RATERS, EmbeddingRelease

RATERS = (1, 2, 3, 5, 10, 20)
"""Raters of the items from which is guessed."""

LEAST, EPSILONS = (1, 2, 3, 5, 10, 20), (1.0, 4.0, 16.0)
SEEDS = (1, 2, 3)
TOLERANCE = 0.002


def error(path: str, settings: dict[str, float]) -> float:
    """Return the RMSE of `sets-only` on validation ratings, in the mean over the seeds."""
    errors = [measured("sets-only", settings, tenth_of_u1(path, seed), seed) for seed in SEEDS]
    return float(np.mean(errors))


def main() -> int:
    """Print all figures; return 1 if the least raters do not stand."""
    path, _ = arguments(__doc__, ())
    train, _ = MovieLens100K(path=path).load_fold("u1")
    print("least_raters 1, guessed from items by their raters (popularity alone):")
    for raters in RATERS:
        found = guesses(table_of_sets(train, EmbeddingRelease(least_raters=1)), train, raters)
        print(f"  {raters}: {found.with_table:.3f} ({found.popularity:.3f}), {found.guessed} guesses")
    errors = {}
    for least in LEAST:
        found = guesses(table_of_sets(train, EmbeddingRelease(least_raters=least)), train)
        errors[least] = error(path, {"protocol.item_embeddings.least_raters": least})
        print(f"least_raters {least}: {found.with_table:.3f}, RMSE {errors[least]:.4f}", flush=True)
    for epsilon in EPSILONS:
        found = guesses(table_of_sets(train, EmbeddingRelease(least_raters=1, epsilon=epsilon)), train)
        rmse = error(path, {"protocol.item_embeddings.epsilon": epsilon})
        print(f"epsilon {epsilon:g}: {found.with_table:.3f}, RMSE {rmse:.4f}", flush=True)
    behind = errors[LEAST_RATERS] - errors[1]
    verdict = "stands" if behind <= TOLERANCE else "does not stand"
    print(f"least_raters {LEAST_RATERS}: {behind:+.4f} against none, {verdict}")
    return 0 if behind <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
